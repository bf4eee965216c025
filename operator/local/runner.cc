#include "operator/local/runner.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "operator/control/control_server.h"
#include "operator/control/job_settings.h"
#include "operator/core/job/bucket_outage.h"
#include "operator/core/job/job_controller.h"
#include "operator/local/checkpoints/checkpoint_copies.h"
#include "operator/local/checkpoints/start_from.h"
#include "operator/local/event_queue.h"
#include "operator/local/exported_model.h"
#include "operator/local/finished_run.h"
#include "operator/local/model/export_model.h"
#include "operator/local/processes/signal_pipe.h"
#include "operator/local/run_folder/checkpoint_file.h"
#include "operator/local/run_folder/run_folder.h"
#include "operator/local/run_folder/run_paths.h"
#include "operator/local/run_folder/socket_folder.h"
#include "operator/local/run_metrics.h"
#include "operator/local/run_preparation.h"
#include "operator/local/run_processes.h"
#include "operator/local/run_story.h"
#include "operator/local/run_texts.h"
#include "operator/local/state/job_data.h"
#include "operator/local/state/kv_state_store.h"
#include "operator/local/state/old_state.h"
#include "operator/local/state/resumption.h"
#include "operator/local/state/state_copies.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/base/system/random_id.h"
#include "services/common/metrics/exposer.h"
#include "services/common/metrics/metrics.h"

namespace adamant::local {
namespace {

using controller::Action;
using controller::EpochResult;
using controller::JobController;

constexpr char kTheJob[] = "";  // the only one
constexpr std::chrono::milliseconds kProgressInterval{200};

std::string GoOn(const RunPaths& paths) {
  return "go on with: adamant train --resume " + paths.root.string();
}

// One job on this machine: the reconciler around the controller.
class Runner {
 public:
  Runner(v1::TrainingJob job, const RunOptions& options, Observer& observer)
      : job_(std::move(job)),
        paths_(std::filesystem::absolute(options.run_folder)),
        options_(options),
        observer_(observer),
        processes_(job_, paths_, std::filesystem::absolute(options.bin_dir), options.launcher),
        launcher_(processes_.launcher()) {}

  absl::Status Open();
  void Run();
  absl::StatusOr<RunOutcome> Outcome() const {
    ADAMANT_RETURN_IF_ERROR(taken_over_);
    ADAMANT_RETURN_IF_ERROR(gone_);
    return RunOutcome{
        .report = controller_->Report(), .results = story_->results(), .stored = stored_};
  }

 private:
  absl::Status OpenController(const controller::JobSettings& settings);
  void Wait();
  void HandleSignals();
  void Handle(const controller::Event& event, bool more = false);
  void Perform(std::vector<Action> actions);
  bool Persist(const controller::Persist& persist);
  void Start(const controller::StartProcess& start);
  void StartExport(std::uint64_t snapshot);
  void StartCopy();
  void EndCopies();
  void TellCopied();
  void ShowProgress();

  v1::TrainingJob job_;
  const RunPaths paths_;
  const RunOptions options_;
  Observer& observer_;
  const SystemClock clock_;
  const SignalPipe signals_;

  metrics::Registry registry_;
  RunMetrics metrics_{registry_};
  std::unique_ptr<metrics::Exposer> exposer_;  // null: nobody asked for it

  std::optional<RunLock> lock_;
  std::optional<RunFolder> folder_;
  std::optional<SocketFolder> sockets_;  // none: its processes have ports
  std::unique_ptr<StateCopies> store_;
  std::unique_ptr<controller::StateStore> state_;
  std::uint64_t version_ = 0;  // of the state that is stored
  absl::Status stored_;        // not OK: it, or the model, could not be, and so the job ends
  absl::Status taken_over_;    // not OK: another controller has written to it
  absl::Status gone_;          // not OK: the run's folder is
  std::unique_ptr<JobController> controller_;
  std::optional<RunStory> story_;
  EventQueue events_;
  std::unique_ptr<control::ControlServer> server_;
  RunProcesses processes_;
  Launcher& launcher_;  // of those
  std::jthread export_;
  std::optional<CheckpointCopies> copies_;  // none: nobody asked for any

  bool finished_ = false;
  bool suspending_ = false;
  Clock::TimePoint next_progress_{};
  controller::BucketOutage outage_;
};

absl::Status Runner::Open() {
  controller::JobSettings settings = control::SettingsOf(job_);
  if (!options_.is_over) {
    ADAMANT_ASSIGN_OR_RETURN(settings, SettingsOf(job_));
  }
  ADAMANT_ASSIGN_OR_RETURN(lock_, RunLock::Acquire(paths_, RunLock::Use::kControl));
  RemoveLeftovers(paths_);
  ADAMANT_RETURN_IF_ERROR(CheckDataFolder(paths_));
  ADAMANT_ASSIGN_OR_RETURN(store_,
                           StateCopies::Open({paths_.controller(), paths_.controller_copy()}));
  const std::uint64_t writer = RandomId();
  state_ = std::make_unique<KvStateStore>(*store_, writer);
  ADAMANT_RETURN_IF_ERROR(EnterStart(job_, paths_, *state_));
  ADAMANT_RETURN_IF_ERROR(OpenController(settings));
  ADAMANT_ASSIGN_OR_RETURN(RunFolder folder, RunFolder::Open(paths_));
  folder_.emplace(std::move(folder));
  if (!options_.metrics_listen.empty()) {
    ADAMANT_ASSIGN_OR_RETURN(exposer_, metrics::Exposer::Start(options_.metrics_listen, registry_));
  }
  if (options_.listen.empty()) {
    ADAMANT_ASSIGN_OR_RETURN(sockets_, SocketFolder::Make(paths_, SocketFolder::Parents(paths_)));
  }
  ADAMANT_ASSIGN_OR_RETURN(
      server_, control::StartControlServer(sockets_ ? sockets_->address() : options_.listen));
  const auto sink = [this](controller::Event event) { events_.Push(std::move(event)); };
  server_->AddJob(kTheJob, control::StreamSecurity::kPlain, job_, paths_.root.string(), sink);
  server_->SetReport(kTheJob, controller_->Report());
  if (!controller_->IsOver()) {
    ADAMANT_RETURN_IF_ERROR(StoreStart(job_, paths_));
  }
  return WriteFileAtomically(paths_.endpoint(), server_->address() + "\n");
}

absl::Status Runner::OpenController(const controller::JobSettings& settings) {
  ADAMANT_ASSIGN_OR_RETURN(const controller::StateStore::Snapshot stored, state_->Load());
  version_ = stored.version;
  ADAMANT_ASSIGN_OR_RETURN(std::vector<EpochResult> results, StoredResults(stored));
  if (const auto state = stored.entries.find(controller::kStateKey);
      state != stored.entries.end()) {
    ADAMANT_ASSIGN_OR_RETURN(controller_, JobController::Restore(settings, state->second));
    if (!settings.only_checkpoints && !controller_->IsOver()) {
      ADAMANT_RETURN_IF_ERROR(CheckDisksAreThere(paths_, controller_->state()));
    }
    if (options_.accept_changes) {
      controller_->AcceptOtherDataFiles();
    }
  } else {
    ADAMANT_RETURN_IF_ERROR(CheckNotBegun(paths_));
    const std::uint64_t uid = RandomId();
    controller_ = JobController::Create(settings, uid);
  }
  ADAMANT_ASSIGN_OR_RETURN(
      RunStory story,
      RunStory::Open(job_, paths_, controller_->state(), std::move(results), observer_));
  story_.emplace(std::move(story));
  if (job_.spec().output().has_checkpoints()) {
    copies_.emplace(job_, paths_, controller_->state().checkpoint.snapshot);
  }
  return absl::OkStatus();
}

void Runner::Run() {
  story_->Begin();
  story_->TellWarnings(
      TextsAtStart(*controller_, job_, paths_, options_.warnings, options_.changes));
  story_->TellAlarms(store_->TakeAlarms());
  const bool ours = processes_.AreChildren();  // then those of an earlier controller died with it
  Perform(controller_->Begin(clock_.Now(), {.others = !ours, .running = launcher_.Survivors()}));
  while (!finished_) {
    Wait();
    gone_ = folder_->CheckInPlace();
    if (!gone_.ok()) {
      return launcher_.KillAll();  // nothing more may be written: another's may be in its place
    }
    HandleSignals();
    for (const controller::ProcessExited& exited : launcher_.Reap()) {
      Handle(exited);
    }
    for (const controller::Event& event : events_.TakeAll()) {
      Handle(event, /*more=*/true);
    }
    Handle(controller::Tick{});
    TellCopied();
    ShowProgress();
  }
  launcher_.KillAll();
  server_->Stop();
  EndCopies();
  if (controller_->Report().phase == controller::Phase::kFailed &&
      controller_->state().step == controller::Step::kExporting) {
    stored_.Update(CheckModelFiles(paths_));
  }
  story_->Finish();
  unlink(paths_.endpoint().c_str());
}

void Runner::Wait() {
  std::vector<pollfd> descriptors = {{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0},
                                     {.fd = events_.descriptor(), .events = POLLIN, .revents = 0}};
  launcher_.AddDescriptors(descriptors);
  const auto now = clock_.Now();
  const auto until = std::min(controller_->NextTimer(now), next_progress_);
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  poll(descriptors.data(), descriptors.size(), static_cast<int>(std::max<std::int64_t>(wait, 0)));
}

void Runner::HandleSignals() {
  while (const int signal = signals_.Take()) {
    if (signal == SIGPIPE && suspending_) {
      continue;  // what is told of the stop is not read either
    }
    const bool again = std::exchange(suspending_, true);
    if (again) {
      launcher_.KillAll();
    }
    Handle(controller::SuspendRequested{
        .reason = "stopped by " + SignalPipe::NameOf(signal) +
                  (CanBeResumed(paths_) ? "; adamant train --resume goes on from here" : ""),
        .at_once = again});
  }
}

void Runner::Handle(const controller::Event& event, bool more) {
  Perform(controller_->Handle(event, clock_.Now(), more));
  if (copies_ && copies_->IsDue()) {
    StartCopy();
  }
}

void Runner::Perform(std::vector<Action> actions) {
  for (Action& action : actions) {
    if (const auto* persist = std::get_if<controller::Persist>(&action)) {
      if (!Persist(*persist)) {
        return;  // what follows depends on it
      }
    } else if (const auto* send = std::get_if<controller::Send>(&action)) {
      ADAMANT_FAILPOINT("controller/send");
      server_->Send(*send);
    } else if (const auto* close = std::get_if<controller::CloseConnection>(&action)) {
      server_->Close(close->connection);
    } else if (const auto* start = std::get_if<controller::StartProcess>(&action)) {
      Start(*start);
    } else if (const auto* kill = std::get_if<controller::KillProcess>(&action)) {
      launcher_.Kill(kill->id, kill->generation);
    } else if (const auto* wanted = std::get_if<controller::Export>(&action)) {
      StartExport(wanted->snapshot);
    } else if (const auto* manifest = std::get_if<controller::WriteManifest>(&action)) {
      story_->Record(WriteCheckpointManifest(
          paths_,
          {.job_uid = controller_->state().job_uid, .checkpoint = manifest->checkpoint},
          manifest->keep));
      if (copies_) {
        copies_->OnCheckpoint(manifest->checkpoint.snapshot);
      }
    } else if (const auto* done = std::get_if<controller::EpochDone>(&action)) {
      story_->TellEpoch(done->result);
    } else if (const auto* phase = std::get_if<controller::FailoverPhase>(&action)) {
      metrics_.OnFailoverPhase(*phase);
    } else if (const auto* promoted = std::get_if<controller::Promoted>(&action)) {
      metrics_.OnPromoted(*promoted);
    } else if (const auto* note = std::get_if<controller::Note>(&action)) {
      story_->Tell(*note);
    } else if (std::holds_alternative<controller::Finished>(action)) {
      finished_ = true;
    }
  }
}

// Returns whether the actions that follow may be carried out. At the end of a job they must be,
// stored or not.
bool Runner::Persist(const controller::Persist& persist) {
  const absl::Status status = state_->CompareAndSwap(version_, persist.entries);
  story_->TellAlarms(store_->TakeAlarms());
  if (status.ok()) {
    ++version_;
    return true;
  }
  if (absl::IsAborted(status)) {  // nothing that this controller thinks counts any more
    taken_over_ = status;
    finished_ = true;
    return false;
  }
  if (controller::IsFinal(controller_->state().phase)) {
    return true;
  }
  stored_ = WithAdvice(status, GoOn(paths_));
  events_.Push(controller::ReconcilerFailed{"cannot store the state of the job: " +
                                            std::string(stored_.message())});
  return false;
}

void Runner::Start(const controller::StartProcess& start) {
  ADAMANT_FAILPOINT("controller/start_process");
  const auto tell = [&](std::string strange) {
    story_->Tell({.kind = controller::Note::Kind::kAlarm,
                  .member = start.id,
                  .epoch = controller_->state().epoch,
                  .text = std::move(strange)});
  };
  const absl::Status status = processes_.Start(
      start, {.controller = server_->address(), .sockets = sockets_ ? &*sockets_ : nullptr}, tell);
  if (!status.ok()) {
    events_.Push(
        controller::ProcessExited{.id = start.id,
                                  .generation = start.generation,
                                  .how = "could not be started: " + std::string(status.message()),
                                  .cannot_run = true});
  }
}

void Runner::StartExport(std::uint64_t snapshot) {
  export_ = std::jthread([this, model = ModelToExport(*controller_, job_, snapshot)] {
    events_.Push(
        controller::Exported{.snapshot = model.source.snapshot,
                             .status = ExportModel(job_, model.source, model.metadata, paths_)});
  });
}

// What is stored is as it was when the checkpoint became the newest.
void Runner::StartCopy() {
  absl::StatusOr<controller::StateStore::Snapshot> stored = state_->Load();
  const std::uint64_t checkpoint = copies_->TakeDue();
  if (stored.ok()) {
    copies_->Begin(checkpoint, std::move(stored->entries));
    Handle(controller::CheckpointsHeld{copies_->needed()});
  }
  story_->Record(stored.status());
}

void Runner::EndCopies() {
  if (copies_ && suspending_) {
    copies_->Stop();  // whoever stops the job does not wait
  }
  while (copies_ && !copies_->needed().empty()) {
    copies_->Wait();
    TellCopied();
  }
}

void Runner::TellCopied() {
  if (const auto copied = copies_ ? copies_->TakeResult() : std::nullopt) {
    Handle(controller::CheckpointsHeld{copies_->needed()});
    story_->Tell(copies_->NoteOf(*copied, controller_->state().epoch));
  }
}

void Runner::ShowProgress() {
  const auto now = clock_.Now();
  if (now >= next_progress_) {
    next_progress_ = now + kProgressInterval;
    controller::JobReport report = controller_->Report();
    outage_.TellIn(report, now, clock_.WallNow());
    server_->SetReport(kTheJob, report);
    metrics_.OnReport(report);
    observer_.OnProgress(report);
  }
}

}  // namespace

absl::StatusOr<RunOutcome> RunJob(v1::TrainingJob job,
                                  const RunOptions& options,
                                  Observer& observer) {
  auto runner = std::make_unique<Runner>(std::move(job), options, observer);
  ADAMANT_RETURN_IF_ERROR(WithAdvice(runner->Open(), GoOn(RunPaths(options.run_folder))));
  runner->Run();
  absl::StatusOr<RunOutcome> outcome = runner->Outcome();
  runner.reset();  // its processes have ended with it
  const bool is_over = options.launcher == nullptr && outcome.ok() &&
                       outcome->report.phase == controller::Phase::kSucceeded;
  if (is_over) {
    if (const absl::Status tidied = TidyFinishedRun(RunPaths(options.run_folder)); !tidied.ok()) {
      LogWarning("the folder of the run stays larger than it need be",
                 {{"error", tidied.ToString()}});
    }
  }
  return outcome;
}

}  // namespace adamant::local
