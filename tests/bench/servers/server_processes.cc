#include "tests/bench/servers/server_processes.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/check.h"
#include "services/common/job/job.h"
#include "services/common/model/model.h"
#include "tests/bench/servers/bucket_records.h"
#include "tests/fakes/fake_controller.h"

namespace adamant::parameter_server {
namespace {

namespace fs = std::filesystem;

v1::TrainingJob JobOf(const std::string& manifest) {
  const job::ParseResult parsed = job::ParseJob(manifest, "job.yaml");
  ADAMANT_CHECK(parsed.job != nullptr,
                parsed.problems.empty() ? "" : job::Format(parsed.problems.front()));
  return *parsed.job;
}

fs::path NewFolder() {
  std::string name = (fs::temp_directory_path() / "adamant-bench-XXXXXX").string();
  ADAMANT_CHECK(mkdtemp(name.data()) != nullptr, "TMPDIR can be written");
  return name;
}

}  // namespace

class ServerProcesses::Server {
 public:
  Server(std::uint32_t slot, const v1::TrainingJob& job, BucketRecords& records)
      : folder_(NewFolder()), slot_(slot) {
    Spawn();
    const auto join = controller_.Receive();
    ADAMANT_CHECK(join.has_value() && join->has_join(), "a server joins");
    join_ = join->join();
    v1::ControllerMessage message;
    v1::Welcome& welcome = *message.mutable_welcome();
    welcome.set_term(1);
    welcome.set_incarnation(1);
    welcome.set_job_uid(kJobUid);
    *welcome.mutable_job() = job;
    controller_.Send(message);
    listener_ = std::jthread([this, &records] {
      for (auto heard = controller_.Receive(); heard.has_value(); heard = controller_.Receive()) {
        records.Hear(*heard);
      }
    });
  }

  ~Server() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    listener_.join();
    fs::remove_all(folder_);
  }

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Send(const v1::Membership& membership) {
    v1::ControllerMessage message;
    *message.mutable_membership() = membership;
    controller_.Send(message);
  }

  [[nodiscard]] v1::Member member() const {
    v1::Member member;
    member.set_role(v1::PARAMETER_SERVER);
    member.set_slot(slot_);
    member.set_incarnation(1);
    member.set_address(join_.address());
    member.set_replication_address(join_.replication_address());
    return member;
  }

  [[nodiscard]] const std::string& address() const { return join_.address(); }

  [[nodiscard]] double CpuSeconds() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    file.ignore(4096, ')');  // the name may hold blanks
    std::string skipped;
    for (int field = 3; field < 14; ++field) {
      file >> skipped;
    }
    double user = 0;
    double system = 0;
    file >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

 private:
  void Spawn() {
    std::vector<std::string> flags = {PARAMETER_SERVER_PATH,
                                      "--controller",
                                      controller_.address(),
                                      "--slot",
                                      std::to_string(slot_),
                                      "--data-dir",
                                      folder_ / "data",
                                      "--log-level",
                                      "error"};
    std::vector<char*> argv;
    for (std::string& flag : flags) {
      argv.push_back(flag.data());
    }
    argv.push_back(nullptr);
    const int error =
        posix_spawn(&pid_, PARAMETER_SERVER_PATH, nullptr, nullptr, argv.data(), environ);
    ADAMANT_CHECK(error == 0, "the program is built");
  }

  const fs::path folder_;
  const std::uint32_t slot_;
  fakes::FakeController controller_;
  pid_t pid_ = 0;
  v1::Join join_;
  std::jthread listener_;
};

ServerProcesses::ServerProcesses(std::uint32_t servers, const std::string& manifest)
    : records_(std::make_unique<BucketRecords>()) {
  const v1::TrainingJob job = JobOf(manifest);
  auto graph = model::BuildGraph(job::NetOf(job));
  ADAMANT_CHECK(graph.ok(), graph.status().ToString());
  const auto buckets =
      static_cast<std::uint32_t>(job.spec().distribution().parameter_servers().buckets());
  layout_ = std::make_unique<ShardLayout>(std::move(graph->parameters), buckets);
  std::vector<v1::Member> members;
  for (std::uint32_t slot = 0; slot < servers; ++slot) {
    servers_.push_back(std::make_unique<Server>(slot, job, *records_));
    members.push_back(servers_.back()->member());
  }
  records_->Assign(std::move(members), buckets);
  Publish();
  records_->AwaitReady();
  records_->SetCreated();
  Publish();
  for (std::uint32_t slot = 1; slot < servers; ++slot) {
    records_->SetLearner(slot);
    Publish();
    records_->AwaitAdded();
    Publish();
  }
  version_ = records_->Next().buckets(0).epoch();
}

ServerProcesses::~ServerProcesses() = default;

const std::string& ServerProcesses::address() const { return servers_[0]->address(); }

double ServerProcesses::CpuSeconds() const {
  double seconds = 0;
  for (const auto& server : servers_) {
    seconds += server->CpuSeconds();
  }
  return seconds;
}

void ServerProcesses::Publish() {
  const v1::Membership membership = records_->Next();
  for (const auto& server : servers_) {
    server->Send(membership);
  }
}

}  // namespace adamant::parameter_server
