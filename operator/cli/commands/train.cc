#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/cli/commands/commands.h"
#include "operator/cli/commands/display.h"
#include "operator/cli/commands/warnings_here.h"
#include "operator/cli/console/arguments.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/print_error.h"
#include "operator/cli/warnings/expectation.h"
#include "operator/cli/warnings/machine_warning.h"
#include "operator/cli/warnings/net_plan.h"
#include "operator/local/checkpoints/start_from.h"
#include "operator/local/finished_run.h"
#include "operator/local/processes/signal_pipe.h"
#include "operator/local/run_folder/run_paths.h"
#include "operator/local/run_preparation.h"
#include "operator/local/runner.h"
#include "operator/local/state/job_data.h"
#include "operator/local/state/mode_change.h"
#include "operator/local/state/resumption.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/counted.h"
#include "services/common/base/log.h"
#include "services/common/base/system/files.h"
#include "services/common/base/system/listen.h"
#include "services/common/base/system/thread_affinity.h"
#include "services/common/job/job.h"
#include "services/common/kernels/isa.h"
#include "services/common/rpc/grpc_log.h"

namespace adamant::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  adamant train deploy/examples/digits.yaml
      Trains in a new folder under runs/ and shows a live bar.
  adamant train job.yaml --run-dir runs/first
      Trains in a folder of your choice, which must be empty or new.
  adamant train --resume runs/first
      Goes on after Ctrl-C, a crash or kill -9. Its job.yaml may have changed in what leaves the
      training the same (workers, epochs, deadlines, ...); --accept-changes takes more, as the rate.
  adamant train job.yaml --output json | jq 'select(.event == "epoch")'
      Events for machines, one JSON object a line.
  adamant train job.yaml --metrics-listen 127.0.0.1:9090
      Serves the controller's metrics, those of buckets and failovers, to Prometheus.

Ctrl-C stops all processes within 3 s; the run can be resumed. So does a reader of the output
that leaves, as `| head -1`.
Exit codes: 0 succeeded, 1 the job failed, 2 bad flags, manifest or data,
3 stopped and can be resumed, 4 this machine does not let it run.)";

constexpr rlim_t kFewestFiles = 64;     // with which a small job runs
constexpr rlim_t kUsualFiles = 256;     // enough for many processes
constexpr rlim_t kDefaultFiles = 1024;  // where nobody has set another number

struct TrainFlags {
  std::string job;
  std::string run_folder;
  std::string resume;
  std::string bin_dir;
  std::string metrics_listen;
  bool accept_changes = false;
  Output output = Output::kText;
};

// The folder of this program, where those of the services lie too.
std::filesystem::path OwnFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

// What a new run begins with in place of weights that are drawn; "" for another.
std::string StartText(const TrainFlags& flags, const v1::TrainingJob& job) {
  const v1::StartFrom& start = job.spec().start_from();
  if (!flags.resume.empty() || !job.spec().has_start_from()) {
    return "";
  }
  return start.has_weights() ? ", with the weights of " + start.weights().path()
                             : ", going on from " + start.checkpoint().path();
}

std::string Summary(const v1::TrainingJob& job) {
  const v1::Distribution& distribution = job.spec().distribution();
  const v1::ParameterServers& servers = distribution.parameter_servers();
  const std::string model =
      job.spec().model().has_reference() ? job.spec().model().reference() : "a net of its own";
  return model + " on " + Counted(distribution.workers(), "worker") + " of " +
         Counted(distribution.threads_per_worker(), "thread") + ", " +
         Counted(servers.count(), "parameter server") +
         (servers.copies() > 1 ? " with " + std::to_string(servers.copies()) + " copies" : "") +
         ", " + Counted(distribution.data_servers(), "data server");
}

// What the run was started with counts where job.yaml is another manifest now; `taken` is what of
// it may change. An ExitCode if it cannot go on so.
int CompareWithStart(const TrainFlags& flags,
                     const v1::TrainingJob& job,
                     std::vector<std::string>& taken) {
  const absl::StatusOr<local::Resumption> resumption =
      local::CompareWithStart(job, local::RunPaths(flags.run_folder), flags.accept_changes);
  if (!resumption.ok()) {
    PrintError(std::string(resumption.status().message()));
    return kCannotRun;
  }
  if (!resumption->refused.empty()) {
    PrintError(flags.job +
               " or its data is not what the run was started with; nothing was started:");
    for (const std::string& line : resumption->refused) {
      std::fprintf(stderr, "  %s\n", line.c_str());
    }
    return kBadInput;
  }
  taken = resumption->taken;
  return kOk;
}

// Whether the controller's metrics can be served where they are wanted; an ExitCode if not.
int CheckMetricsAddress(const std::string& address) {
  const absl::StatusOr<Listener> listener = Listen(address);
  if (listener.ok()) {
    close(listener->socket);
    return kOk;
  }
  PrintError("--metrics-listen: " + std::string(listener.status().message()));
  return absl::IsInvalidArgument(listener.status()) ? kBadInput : kCannotRun;
}

// A folder's name as messages show it: "runs/a" for "runs/./a/".
std::string Plain(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).string();
}

// Whether there is a run in the folder that nobody else runs; an ExitCode if not.
int CheckResumable(const local::RunPaths& paths) {
  if (const absl::Status path = local::CheckPath(paths); !path.ok()) {
    PrintError(std::string(path.message()));
    return kBadInput;
  }
  if (const absl::Status run = local::CheckHoldsRun(paths); !run.ok()) {
    PrintError(std::string(run.message()));
    return kBadInput;
  }
  if (const absl::Status files = local::CheckRunFiles(paths); !files.ok()) {
    PrintError(std::string(files.message()));
    return kCannotRun;
  }
  if (const absl::Status free = local::RunLock::CheckFree(paths); !free.ok()) {
    PrintError(std::string(free.message()));
    return kCannotRun;
  }
  return kOk;
}

// What a run begins or goes on with.
struct Prepared {
  std::unique_ptr<v1::TrainingJob> job;
  std::vector<std::string> changes;  // to be told of a run that goes on
  bool is_over = false;              // it has succeeded, and is only shown
  bool is_only_read = false;         // of such a one: this process may not write to it
  std::string not_taken;             // local::NotTaken of that
};

// A run that is over needs neither its training data nor, unless there is more to train by it, a
// job.yaml without mistakes.
bool IsOver(const local::RunPaths& paths, Prepared& prepared) {
  local::RunManifest manifest = local::ReadRunManifest(paths, job::DataReading::kNone);
  if (!local::IsOver(manifest, paths)) {
    return false;
  }
  prepared.not_taken = local::NotTaken(manifest);
  prepared.job = std::move(manifest.job);
  return true;
}

// A run that is over need not be writable; an ExitCode if another cannot go on as it is not.
int CheckWritable(const local::RunPaths& paths, Prepared& prepared) {
  const absl::Status writable = local::CheckRunIsWritable(paths);
  prepared.is_only_read = prepared.is_over && !writable.ok();
  if (writable.ok() || prepared.is_over) {
    return kOk;
  }
  PrintError(std::string(writable.message()) + "; once whoever runs this may write to all of " +
             paths.root.string() + ", the run goes on");
  return kCannotRun;
}

// Where few files may be open at once, what cannot be opened hardly says why, or aborts. "" if
// there may be `wanted`.
std::string FewFiles(rlim_t wanted) {
  rlimit files{};
  return getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < wanted
             ? "no more than " + std::to_string(files.rlim_cur) +
                   " files may be open at once, which is too few: ulimit -n " +
                   std::to_string(std::max(kDefaultFiles, wanted))
             : "";
}

// Of the process of a job that opens the most, as counted in /proc/PID/fd; and what connections
// leave free (rpc::Door).
rlim_t FilesOf(const v1::TrainingJob& job) {
  const v1::Distribution& distribution = job.spec().distribution();
  const auto workers = static_cast<rlim_t>(distribution.workers());
  const auto servers = static_cast<rlim_t>(distribution.parameter_servers().count());
  const rlim_t processes = workers + servers + static_cast<rlim_t>(distribution.data_servers());
  const rlim_t own = 27 + 2 * processes;
  const rlim_t of_server = 18 + workers + 6 * (servers - 1);
  constexpr rlim_t kGuests = 10;  // who ask for status and metrics
  const rlim_t open = std::max(own, of_server) + kGuests;
  return open + std::min(open / 3 + 1, rlim_t{64});
}

// The mode makes mistakes of what belongs to the one that the run was started with.
void TellModeChange(const TrainFlags& flags, const job::ParseResult& parsed) {
  if (flags.resume.empty() || parsed.draft == nullptr) {
    return;
  }
  const std::string mode = local::ModeRefusal(*parsed.draft, local::RunPaths(flags.run_folder));
  if (!mode.empty()) {
    PrintError(flags.job + " is not what the run was started with: " + mode);
  }
}

// Whether the flags go together; an ExitCode if they do not.
int CheckFlags(const TrainFlags& flags) {
  const bool resume = !flags.resume.empty();
  if (!resume && flags.job.empty()) {
    PrintError("train needs a manifest, or --resume DIR; see adamant train --help");
    return kBadInput;
  }
  if (std::error_code error; !resume && std::filesystem::is_directory(flags.job, error)) {
    const bool holds_run = local::CheckHoldsRun(local::RunPaths(flags.job)).ok();
    PrintError(flags.job + " is a folder, and a manifest is wanted" +
               (holds_run ? "; its run goes on with: adamant train --resume " + flags.job : ""));
    return kBadInput;
  }
  if (!resume && flags.accept_changes) {
    PrintError("--accept-changes goes with --resume DIR");
    return kBadInput;
  }
  if (resume && (!flags.job.empty() || !flags.run_folder.empty())) {
    PrintError("--resume DIR goes on in that folder with its job.yaml: no manifest, no --run-dir");
    return kBadInput;
  }
  return kOk;
}

// Whether the job can begin with what it is to start from; an ExitCode if not.
int CheckStart(const TrainFlags& flags, const v1::TrainingJob& job) {
  const absl::Status start = local::CheckStart(job);
  if (start.ok()) {
    return kOk;
  }
  PrintError(flags.job + ": " + std::string(start.message()));
  return absl::IsUnavailable(start) || absl::IsPermissionDenied(start) ? kCannotRun : kBadInput;
}

// Loads the manifest and settles the run directory; an ExitCode if that fails.
int Prepare(TrainFlags& flags, Prepared& prepared) {
  if (const int code = CheckFlags(flags); code != kOk) {
    return code;
  }
  const bool resume = !flags.resume.empty();
  if (resume) {
    flags.run_folder = Plain(flags.resume);
    if (const int code = CheckResumable(local::RunPaths(flags.run_folder)); code != kOk) {
      return code;
    }
    flags.job = local::RunPaths(flags.run_folder).job().string();
    prepared.is_over = IsOver(local::RunPaths(flags.run_folder), prepared);
    if (const int code = CheckWritable(local::RunPaths(flags.run_folder), prepared); code != kOk) {
      return code;
    }
  }
  if (prepared.is_over) {
    return CompareWithStart(flags, *prepared.job, prepared.changes);
  }
  job::ParseResult parsed =
      resume ? job::LoadJob(flags.job, job::DataReading::kLabels, Pipes::kRefused)
             : job::LoadJob(flags.job, job::DataReading::kWhole);
  TellModeChange(flags, parsed);
  PrintProblems(parsed.problems);
  if (parsed.job == nullptr) {
    return kBadInput;
  }
  if (const absl::Status here = local::CheckOneMachine(*parsed.job); !here.ok()) {
    PrintError(flags.job + ": " + std::string(here.message()));
    return kBadInput;
  }
  if (const int code = resume ? kOk : CheckStart(flags, *parsed.job); code != kOk) {
    return code;
  }
  if (const std::string few = FewFiles(FilesOf(*parsed.job)); !few.empty()) {
    PrintError(few);
    return kCannotRun;
  }
  prepared.job = std::move(parsed.job);
  if (resume) {
    return CompareWithStart(flags, *prepared.job, prepared.changes);
  }
  const absl::StatusOr<std::filesystem::path> folder =
      local::PrepareRun(*prepared.job, flags.run_folder);
  if (!folder.ok()) {
    PrintError(std::string(folder.status().message()));
    const bool is_bad_name =
        absl::IsAlreadyExists(folder.status()) || absl::IsInvalidArgument(folder.status());
    return is_bad_name ? kBadInput : kCannotRun;
  }
  flags.run_folder = folder->string();
  return kOk;
}

// What `validate` warns of, which of a run that goes on was said before, and what this machine does
// not have, which one that is over does not need.
std::vector<std::string> WarningsOf(const Prepared& prepared,
                                    std::vector<std::string> expectation) {
  std::vector<std::string> warnings = std::move(expectation);
  if (prepared.is_over) {
    return prepared.not_taken.empty() ? warnings : std::vector{prepared.not_taken};
  }
  std::ranges::move(WarningsHere(*prepared.job), std::back_inserter(warnings));
  return warnings;
}

// Leaves in the run's folder how this machine trains the net. A run goes on without it.
void WritePlan(const v1::TrainingJob& job, const std::filesystem::path& run_folder) {
  if (const absl::StatusOr<std::string> plan = QuickNetPlan(job); plan.ok()) {
    WriteFileAtomically(local::RunPaths(run_folder).plan(), *plan).IgnoreError();
  }
}

int ExitCodeOf(const local::RunOutcome& outcome) {
  if (!outcome.stored.ok()) {
    return kCannotRun;
  }
  if (outcome.report.invalid) {
    return kBadInput;
  }
  switch (outcome.report.phase) {
    case controller::Phase::kSucceeded:
      return kOk;
    case controller::Phase::kSuspended:
      return kInterrupted;
    default:
      return kJobFailed;
  }
}

// Of a run that was stopped as nobody reads its output, or whose output finds no room.
void TellUnread(const Ending& ending) {
  if (std::ferror(stdout) != 0 && ending.report.phase == controller::Phase::kSuspended) {
    PrintError(ending.report.message);
    std::fprintf(stderr, "%s\n", StoppedLine(ending).c_str());
  }
}

// Whether anything can be run here; an ExitCode if not.
int CheckMachine(const TrainFlags& flags, const std::filesystem::path& bin_dir) {
  if (const absl::Status status = local::CheckPrograms(bin_dir); !status.ok()) {
    PrintError(std::string(status.message()));
    return kCannotRun;
  }
  if (const std::string few = FewFiles(kFewestFiles); !few.empty()) {
    PrintError(few);
    return kCannotRun;
  }
  if (const absl::Status limited = kernels::LimitIsaFromEnvironment(); !limited.ok()) {
    PrintError(std::string(limited.message()));
    return kBadInput;
  }
  return flags.metrics_listen.empty() ? kOk : CheckMetricsAddress(flags.metrics_listen);
}

int Train(TrainFlags flags) {
  local::BlockStopSignals();
  InitLog("adamant", LogLevel::kError);
  rpc::RouteGrpcLog();
  rpc::KeepGrpc();  // which waits for ever to end a thread that it could not start
  const std::filesystem::path bin_dir =
      flags.bin_dir.empty() ? OwnFolder() : std::filesystem::path(flags.bin_dir);
  if (const int code = CheckMachine(flags, bin_dir); code != kOk) {
    return code;
  }
  Prepared prepared;
  if (const int code = Prepare(flags, prepared); code != kOk) {
    return code;
  }
  const v1::TrainingJob& job = *prepared.job;
  const ExpectationText expectation = flags.resume.empty() ? ExpectationOf(job) : ExpectationText{};
  const std::unique_ptr<Display> display = NewDisplay(flags.output);
  display->OnOpening({.job = job.metadata().name(),
                      .run_folder = flags.run_folder,
                      .summary = Summary(job) + StartText(flags, job),
                      .epoch_completion = job.spec().run_policy().epoch_completion(),
                      .crowd = CrowdText(job, UsableCpus()),
                      .speed = expectation.speed});
  const std::vector<std::string> warnings = WarningsOf(prepared, expectation.warnings);
  WritePlan(job, flags.run_folder);
  const local::RunOptions options{.run_folder = flags.run_folder,
                                  .bin_dir = bin_dir,
                                  .metrics_listen = flags.metrics_listen,
                                  .warnings = warnings,
                                  .changes = prepared.changes,
                                  .accept_changes = flags.accept_changes,
                                  .is_over = prepared.is_over};
  const absl::StatusOr<local::RunOutcome> outcome =
      prepared.is_only_read ? local::ShowFinishedRun(job, options, *display)
                            : local::RunJob(job, options, *display);
  if (!outcome.ok()) {
    const std::string few = FewFiles(kUsualFiles);
    PrintError(std::string(outcome.status().message()) + (few.empty() ? "" : "; " + few));
    return kCannotRun;
  }
  const Ending ending{
      .report = outcome->report, .run_folder = flags.run_folder, .exit_code = ExitCodeOf(*outcome)};
  display->OnEnding(ending);
  TellUnread(ending);
  return ending.exit_code;
}

}  // namespace

void AddTrain(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("train", "Train the model that a manifest describes, on this machine");
  const auto flags = std::make_shared<TrainFlags>();
  command.add_option("JOB", flags->job, "Manifest of the job (YAML)");
  AddFolder(command, "--run-dir", flags->run_folder, "Folder of the run [runs/NAME-TIME]");
  AddFolder(command, "--resume", flags->resume, "Folder of a run to go on with");
  command.add_flag(
      "--accept-changes",
      flags->accept_changes,
      "With --resume: train on by a job.yaml that has changed, where that is possible");
  AddFolder(command, "--bin-dir", flags->bin_dir, "Folder of the adamant-* programs [beside this]");
  command
      .add_option("--metrics-listen",
                  flags->metrics_listen,
                  "HOST:PORT of the controller's /metrics [none]")
      ->check(ListenAddress());
  AddOutput(command, flags->output);
  command.footer(kExamples);
  command.callback([flags, &exit_code] { exit_code = Train(*flags); });
}

}  // namespace adamant::cli
