// process_controller: a job's controller whose processes are started by somebody else, who lets
// them outlive it.
//
// usage: process_controller JOB.yaml RUN_FOLDER BIN_DIR LISTEN SURVIVORS
//
// RUN_FOLDER is created, or gone on with if it holds a run. SURVIVORS are the processes that run
// already, with the generations under which they were asked for: {"worker-0": 3}. What to do is
// told on standard output, a JSON object per line:
//
//   {"ready": true}
//       once: it has taken the run directory, which others may look at now
//   {"start": "worker-0", "generation": 3, "arguments": [PROGRAM, …], "log": FILE}
//   {"kill": "worker-0", "generation": 3}
//   {"kill_all": true}
//
// and how a process ended is heard on standard input:
//
//   {"exited": "worker-0", "generation": 3, "how": "was killed by signal 9", "bad_configuration":
//   false}
//
// SIGTERM suspends the job, as in `adamant train`.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/local/processes/signal_pipe.h"
#include "operator/local/run_folder/run_paths.h"
#include "operator/local/run_preparation.h"
#include "operator/local/runner.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/job.h"

namespace adamant::processes {
namespace {

using nlohmann::json;

// Of "parameter-server-2".
controller::SlotId MemberOf(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  const auto slot = static_cast<std::uint32_t>(std::stoul(name.substr(dash + 1)));
  for (const auto role : {controller::Role::kWorker,
                          controller::Role::kDataServer,
                          controller::Role::kParameterServer}) {
    if (const controller::SlotId id{.role = role, .slot = slot}; ToString(id) == name) {
      return id;
    }
  }
  std::fprintf(stderr, "process_controller: %s is no process of a job\n", name.c_str());
  std::exit(2);
}

// Whoever is at the other end of the standard streams starts the processes.
class RemoteLauncher final : public local::Launcher {
 public:
  explicit RemoteLauncher(const json& survivors) {
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    for (const auto& [name, generation] : survivors.items()) {
      ids_[name] = MemberOf(name);
      survivors_.push_back({.id = ids_[name], .generation = generation.get<std::uint64_t>()});
    }
  }

  std::vector<controller::StartProcess> Survivors() const override { return survivors_; }

  absl::Status Start(const local::Command& command) override {
    const std::string name = controller::ToString(command.id);
    ids_[name] = command.id;
    Say({{"start", name},
         {"generation", command.generation},
         {"arguments", command.arguments},
         {"log", command.log.string()}});
    return absl::OkStatus();
  }

  void Kill(controller::SlotId id, std::uint64_t generation) override {
    Say({{"kill", controller::ToString(id)}, {"generation", generation}});
  }

  void KillAll() override { Say({{"kill_all", true}}); }

  void AddDescriptors(std::vector<pollfd>& descriptors) const override {
    if (!ended_) {
      descriptors.push_back({.fd = STDIN_FILENO, .events = POLLIN, .revents = 0});
    }
  }

  std::vector<controller::ProcessExited> Reap() override {
    if (!std::exchange(told_, true)) {
      Say({{"ready", true}});
    }
    char buffer[4096];
    ssize_t got = 0;
    while ((got = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0) {
      input_.append(buffer, static_cast<std::size_t>(got));
    }
    ended_ = ended_ || got == 0;
    std::vector<controller::ProcessExited> exits;
    for (std::size_t end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
      const json line = json::parse(input_.substr(0, end));
      input_.erase(0, end + 1);
      exits.push_back({.id = ids_.at(line.at("exited").get<std::string>()),
                       .generation = line.at("generation").get<std::uint64_t>(),
                       .how = line.at("how").get<std::string>(),
                       .bad_configuration = line.at("bad_configuration").get<bool>()});
    }
    return exits;
  }

 private:
  static void Say(const json& line) {
    std::puts(line.dump().c_str());
    std::fflush(stdout);
  }

  std::vector<controller::StartProcess> survivors_;
  std::map<std::string, controller::SlotId> ids_;  // by name: of all that may yet end
  std::string input_;
  bool told_ = false;
  bool ended_ = false;
};

// The run directory tells all there is to tell.
class NoObserver final : public local::Observer {
 public:
  void OnNote(const controller::Note& /*note*/) override {}
  void OnEpoch(const controller::EpochResult& /*result*/) override {}
  void OnProgress(const controller::JobReport& /*report*/) override {}
};

absl::Status Run(char** arguments) {
  job::ParseResult parsed = job::LoadJob(arguments[0]);
  if (parsed.job == nullptr) {
    return absl::InvalidArgumentError(job::Format(parsed.problems.front()));
  }
  RemoteLauncher launcher(json::parse(arguments[4]));
  const local::RunOptions options{.run_folder = arguments[1],
                                  .bin_dir = arguments[2],
                                  .listen = arguments[3],
                                  .launcher = &launcher};
  if (!std::filesystem::exists(local::RunPaths(options.run_folder).job())) {
    ADAMANT_RETURN_IF_ERROR(local::PrepareRun(*parsed.job, options.run_folder).status());
  }
  NoObserver observer;
  return local::RunJob(std::move(*parsed.job), options, observer).status();
}

}  // namespace
}  // namespace adamant::processes

int main(int argc, char** argv) {
  adamant::local::BlockStopSignals();
  if (argc != 6) {
    std::fprintf(stderr,
                 "usage: process_controller JOB.yaml RUN_FOLDER BIN_DIR LISTEN SURVIVORS\n");
    return 2;
  }
  try {
    const absl::Status status = adamant::processes::Run(argv + 1);
    if (status.ok()) {
      return 0;
    }
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
  } catch (const std::exception& error) {  // of a library; ours are values
    std::fprintf(stderr, "process_controller: %s\n", error.what());
  }
  return 1;
}
