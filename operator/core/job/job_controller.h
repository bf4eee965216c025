#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/core/buckets/placement.h"
#include "operator/core/job/active_time.h"
#include "operator/core/job/admission.h"
#include "operator/core/job/deadlines.h"
#include "operator/core/job/job_report.h"
#include "operator/core/job/process_losses.h"
#include "operator/core/job/server_reports.h"
#include "operator/core/job/start_deadline.h"
#include "operator/core/job/suspension.h"
#include "operator/core/processes/process_starter.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/processes/restart_policy.h"
#include "operator/core/processes/shutdown_sequence.h"
#include "operator/core/processes/silence_watch.h"
#include "operator/core/processes/worker_scaler.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/outcome.h"
#include "operator/core/state/state.h"
#include "operator/core/training/data_reports.h"
#include "operator/core/training/training_run.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// The brain of one job: a pure state machine. The reconciler feeds it events and carries out the
/// actions that it returns, in order; what it must remember it asks to have stored before anything
/// that depends on it. It has no clock, thread, file or socket of its own.
///
/// Threads: one thread at a time.
/// Source: docs/design/0001-spine.md.
class JobController {
 public:
  using TimePoint = Clock::TimePoint;

  /// A controller that is woken later than it asked for by this time was held up: it gives members
  /// time before it counts them as silent.
  static constexpr std::chrono::milliseconds kHeldUp{2'000};

  /// Known facts about the processes that an earlier controller has started.
  struct Survivors {
    bool others = true;  ///< some may live that are not in `running`
    /// Not lost out of sight: each is expected to join again, or its end to be reported.
    std::vector<StartProcess> running{};
    /// A job that had failed or was suspended begins again; else it stays as it ended.
    bool resumes = true;
  };

  /// A new job. `job_uid` names it for good; it must be random.
  static std::unique_ptr<JobController> Create(JobSettings settings, std::uint64_t job_uid);

  /// Goes on from the state that was stored last (under kStateKey). Of spec.distribution only the
  /// number of workers may be another than then. Errors: those of DecodeState; FailedPrecondition,
  /// naming the field, for another number of anything else.
  static absl::StatusOr<std::unique_ptr<JobController>> Restore(JobSettings settings,
                                                                std::string_view state);

  /// Takes a new term and starts all processes that do not run. Once, before any event. A job that
  /// had failed or was suspended gets a fresh restart budget if it resumes, as does one that has
  /// succeeded and has more epochs now; one that stays as it ended only ends what processes it may
  /// have left.
  std::vector<Action> Begin(TimePoint now, const Survivors& survivors);

  /// The data may be other data than until now: what is read next is what the job goes on with, and
  /// until then what it began with stays stored. Before Begin.
  void AcceptOtherDataFiles() { data_reports_.AcceptOthers(); }

  /// It has succeeded, and there is nothing more to train.
  [[nodiscard]] bool IsOver() const;

  /// Of a job that has ended otherwise: to go on with it does no more than to write its model.
  [[nodiscard]] bool HasTrainedAll() const;

  /// Events are handled in the order in which they arrived, a Tick after all that arrived before.
  /// `more`: another one is to be handled at once. Then what follows from a message about buckets
  /// is decided with that one, so that thousands of buckets are stored and published together.
  std::vector<Action> Handle(const Event& event, TimePoint now, bool more = false);

  /// Returns when Handle wants a Tick at the latest.
  [[nodiscard]] TimePoint NextTimer(TimePoint now) const;

  [[nodiscard]] JobReport Report() const;
  [[nodiscard]] const JobState& state() const { return state_; }

  /// The processes that should exist now: those that were started and are not lost.
  [[nodiscard]] std::vector<StartProcess> Wanted() const;

  /// This process has joined, and does not count as silent.
  [[nodiscard]] bool Hears(const StartProcess& process) const {
    return processes_.Has(process.id) && processes_.IsRunning(process.id) &&
           processes_.GenerationOf(process.id) == process.generation;
  }

  [[nodiscard]] const ProcessTable& processes() const { return processes_; }

  /// Some bucket cannot do without the volume that this parameter server uses.
  [[nodiscard]] bool NeedsVolumeOf(std::uint32_t slot) const {
    return placement_.copies().NeedsDiskOf(slot);
  }

  /// Training goes on, and would while any one parameter server is away.
  [[nodiscard]] bool CanSpareAServer() const;

  /// Every bucket has its copies on servers that run: nobody needs an earlier volume.
  [[nodiscard]] bool HasAllCopies() const { return placement_.copies().HasAllCopies(); }

  /// Returns when a job that has given up to start is to begin again (Restore, Begin), though
  /// nobody says so. nullopt: not by itself, or its processes are still being ended.
  [[nodiscard]] std::optional<TimePoint> BeginsAgainAt() const {
    return start_deadline_.BeginsAgainAt();
  }

  /// Address of a running member; empty when it does not run.
  [[nodiscard]] std::string AddressOf(SlotId id) const;

 private:
  JobController(JobSettings settings, JobState state);

  void ResumeEnded();
  void BeginTerm(const Survivors& survivors);
  void StartRoles(const std::vector<StartProcess>& running, TimePoint now);

  void Dispatch(const Event& event, TimePoint now);
  void OnReceived(const Received& event, TimePoint now);
  void OnMessage(ProcessTable::Slot& slot, const MemberMessage& message, TimePoint now);
  void OnFailure(SlotId from, const Failure& failure, TimePoint now);
  void OnHeartbeat(ProcessTable::Slot& slot, const Heartbeat& heartbeat, TimePoint now);
  void OnSpecChanged(const JobSettings& settings, TimePoint now);
  void Scale(std::uint32_t workers, TimePoint now);
  void OnTimer(TimePoint now);

  JobSettings settings_;
  JobState state_;
  Outbox outbox_;
  Outcome outcome_;
  ProcessTable processes_;
  ProcessStarter starter_;
  SilenceWatch silence_;
  RestartPolicy restarts_;
  WorkerScaler scaler_;
  Placement placement_;
  DataReports data_reports_;
  TrainingRun training_;
  ServerReports server_reports_;
  Admission admission_;
  ProcessLosses losses_;
  Suspension suspension_;
  StartDeadline start_deadline_;
  Deadlines deadlines_;
  ShutdownSequence shutdown_;
  Reporter reporter_;

  ActiveTime active_time_;
  bool goes_on_ = false;  // it had begun under another controller, and processes of then may run
  bool finished_ = false;
  std::optional<TimePoint> wake_at_;  // what NextTimer said after the last event
};

}  // namespace adamant::controller
