#include "operator/core/job/job_controller.h"

#include <algorithm>
#include <utility>

#include "operator/core/diagnosis/chance.h"
#include "operator/core/diagnosis/job_length.h"
#include "operator/core/diagnosis/recovery.h"
#include "operator/core/diagnosis/reservations.h"
#include "operator/core/job/first_state.h"
#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

// The servers may hold snapshots that an earlier controller has asked for and could not store.
constexpr std::uint64_t kSnapshotsOfATerm = std::uint64_t{1} << 20;

bool IsAboutBuckets(const Event& event) {
  const auto* received = std::get_if<Received>(&event);
  return received != nullptr && (std::holds_alternative<Proposals>(received->message) ||
                                 std::holds_alternative<BucketsReady>(received->message));
}

// A job that has learned nothing may have lost what it had learned.
std::string OrLost(const JobSettings& settings, const JobState& state) {
  if (const std::string lost = LostWithCopies(settings, state); !lost.empty()) {
    return "; or begin the job anew: " + lost;
  }
  return state.restores > 0 && state.recovery.attempt == 1  // else as it went back
             ? "; or, if all its processes were killed, begin the job anew: what was "
               "acknowledged last was lost with them"
             : "";
}

}  // namespace

std::unique_ptr<JobController> JobController::Create(JobSettings settings, std::uint64_t job_uid) {
  JobState state = NewState(settings, job_uid);
  return std::unique_ptr<JobController>(new JobController(std::move(settings), std::move(state)));
}

absl::StatusOr<std::unique_ptr<JobController>> JobController::Restore(JobSettings settings,
                                                                      std::string_view state) {
  absl::StatusOr<JobState> stored = StoredState(settings, state);
  if (!stored.ok()) {
    return stored.status();
  }
  return std::unique_ptr<JobController>(new JobController(std::move(settings), *std::move(stored)));
}

JobController::JobController(JobSettings settings, JobState state)
    : settings_(std::move(settings)),
      state_(std::move(state)),
      roster_(settings_, state_, outbox_),
      alarms_(outbox_),
      data_(settings_, state_, outbox_),
      parts_(settings_, state_, outbox_, roster_),
      placement_(settings_, state_, outbox_, roster_),
      watch_(settings_, state_, outbox_, meter_),
      sequence_(settings_, state_, outbox_, roster_, parts_, placement_, meter_, watch_),
      going_back_(settings_, state_, outbox_, roster_, placement_, sequence_, meter_, watch_),
      lead_out_(settings_, roster_, outbox_),
      start_watch_(settings_, roster_),
      deadlines_(settings_, state_),
      reporter_(settings_, state_, roster_, placement_, meter_, alarms_) {}

std::vector<Action> JobController::Begin(TimePoint now, const Survivors& survivors) {
  last_advance_ = now;
  const bool had_ended = IsFinal(state_.phase);
  // With each start that fails incarnations get nearer to those of the disks.
  const bool for_good = state_.end == EndKind::kStateIsOld;
  if (IsOver() || (had_ended && (for_good || !survivors.resumes))) {
    finished_ = true;
    for (const Roster::Slot& slot : roster_.slots()) {
      roster_.Kill(slot);  // what the last controller may have left behind
    }
    outbox_.Add(Finished{});
    return outbox_.Take(state_);
  }
  if (had_ended) {
    ++state_.starts;
  }
  bool goes_back = false;
  if (had_ended && !std::exchange(state_.released, false)) {
    state_.restarts = 0;
    goes_back = going_back_.Resume();
    for (SlotRecord& record : state_.slots) {
      record.losses = 0;
    }
  }
  TakeRates(settings_, state_);
  if (goes_back) {
    going_back_.TellResumed();
  }
  if (had_ended && sequence_.HasMore()) {
    // Of one that has succeeded checkpoints alone are kept; the newest is of its last epoch.
    state_.recovery.going_back = state_.recovery.going_back || state_.phase == Phase::kSucceeded;
    sequence_.GoOn();
  }
  const bool none_lives = !survivors.others && survivors.running.empty();
  goes_on_ = !had_ended && !survivors.running.empty() && !state_.recovery.going_back;
  if (had_ended || none_lives || state_.schedule_epochs == 0) {
    state_.schedule_epochs = settings_.epochs;  // no process lives that was told another number
  }
  const bool in_order = state_.phase == Phase::kSuspended;
  ++state_.term;
  state_.phase = Phase::kStarting;
  state_.message.clear();
  state_.invalid = false;
  state_.end = EndKind::kOther;
  outbox_.StateChanged();
  outbox_.Tell(Note::Kind::kPhase, state_.epoch, std::string(PhaseName(state_.phase)));
  if (!survivors.running.empty()) {
    state_.last_snapshot = (state_.last_snapshot / kSnapshotsOfATerm + 1) * kSnapshotsOfATerm;
  }
  // What was lost before a job ended counts no more when it resumes.
  const absl::Status judged =
      had_ended ? absl::OkStatus() : roster_.JudgeGivenUp(survivors.running);
  if (state_.recovery.going_back) {
    going_back_.Begin(survivors.running, now);
  } else {
    roster_.StartRole(Role::kDataServer, survivors.running, now);
    // Else the others could not be told how long the job is.
    if (settings_.starts_together || TrainingExamples(settings_, state_) > 0) {
      roster_.StartRole(Role::kParameterServer, survivors.running, now);
      roster_.StartRole(Role::kWorker, survivors.running, now);
    }
  }
  FailOnLoss(judged);
  placement_.Begin(none_lives, in_order, now);
  outbox_.Add(ManifestOf(state_));  // the last controller may have died before it was written
  return outbox_.Take(state_);
}

bool JobController::IsOver() const {
  return state_.phase == Phase::kSucceeded && !sequence_.HasMore();
}

bool JobController::HasTrainedAll() const {
  return state_.phase != Phase::kSucceeded && state_.step == Step::kExporting &&
         !sequence_.HasMore() && !state_.recovery.ended_diverged;
}

std::vector<Action> JobController::Handle(const Event& event, TimePoint now, bool more) {
  if (finished_) {
    return {};
  }
  Advance(now);
  if (wake_at_ && now > *wake_at_ + kHeldUp) {
    roster_.GrantTime(now);
    alarms_.GrantTime(now);
    if (ready_) {
      sequence_.OnHeldUp();
    }
  }
  const Phase before = state_.phase;
  if (const auto* received = std::get_if<Received>(&event)) {
    OnReceived(*received, now);
  } else if (const auto* gone = std::get_if<Disconnected>(&event)) {
    roster_.OnDisconnected(gone->connection);
  } else if (const auto* exited = std::get_if<ProcessExited>(&event)) {
    OnProcessExited(*exited, now);
  } else if (const auto* exported = std::get_if<Exported>(&event)) {
    OnExported(*exported, now);
  } else if (const auto* suspend = std::get_if<SuspendRequested>(&event)) {
    OnSuspendRequested(*suspend, now);
  } else if (const auto* changed = std::get_if<SpecChanged>(&event)) {
    OnSpecChanged(changed->settings, now);
  } else if (const auto* waiting = std::get_if<ProcessesWait>(&event)) {
    roster_.OnWaiting(waiting->processes, now);
    start_watch_.Explain(waiting->why);
  } else if (const auto* nodes = std::get_if<ZonesKnown>(&event)) {
    placement_.SetZones(nodes->zones);
  } else if (std::holds_alternative<CheckpointRequested>(event)) {
    sequence_.RequestCheckpoint(now);
  } else if (const auto* failed = std::get_if<BodyFailed>(&event)) {
    End(Phase::kFailed, failed->reason);
  }
  if (more && IsAboutBuckets(event)) {
    return {};
  }
  if (std::holds_alternative<Tick>(event)) {
    LoseSilent(now);
  }
  OnTimer(now);
  if (state_.phase != before && !state_.released) {
    outbox_.Tell(Note::Kind::kPhase, state_.epoch, std::string(PhaseName(state_.phase)));
  }
  wake_at_ = NextTimer(now);
  return outbox_.Take(state_);
}

// Counts the time that the job has been active, in whole milliseconds.
void JobController::Advance(TimePoint now) {
  const auto passed = std::chrono::floor<std::chrono::milliseconds>(now - last_advance_);
  if (passed.count() <= 0) {
    return;
  }
  last_advance_ += passed;
  if (!IsFinal(state_.phase)) {
    state_.active += passed;
    if (ready_) {
      state_.epoch_active += passed;
    }
  }
}

void JobController::PublishMembers(TimePoint now) {
  const bool moved = ready_ && parts_.Reassign();
  OnSettled(placement_.Settle(now), now);
  placement_.Publish();
  if (moved) {
    sequence_.RepeatAll(Role::kDataServer);
  }
}

void JobController::OnExported(const Exported& event, TimePoint now) {
  if (IsFinal(state_.phase) || !sequence_.OnExported(event)) {
    return;
  }
  if (event.status.ok() && state_.at_chance) {
    const std::string lost = OrLost(settings_, state_);
    End(Phase::kFailed,
        ChanceFailure(
            state_.row, state_.recovery, settings_.chance_loss, HindrancesOf(settings_, state_)) +
            AfterGoingBack(settings_, state_) + lost,
        lost.empty() ? EndKind::kDidNotLearn : EndKind::kLostLearned);
  } else if (event.status.ok()) {
    End(Phase::kSucceeded, ClosingWords(settings_, state_), EndOfSuccess(settings_, state_));
  } else if (absl::IsUnavailable(event.status) || sequence_.IsExportDisturbed()) {
    sequence_.ExportAgain(now);  // a server is away; whether it comes back is the roster's matter
  } else {
    End(Phase::kFailed, "cannot write the model: " + std::string(event.status.message()));
  }
}

void JobController::BeginWhenReady(TimePoint now) {
  if (!ready_ && !IsFinal(state_.phase) && placement_.IsComplete(now) && parts_.Started() &&
      roster_.AnyStarted(Role::kWorker)) {
    ready_ = true;
    start_watch_.Stop();
    if (std::exchange(state_.releases, 0) > 0) {
      outbox_.StateChanged();
    }
    placement_.OnJobBegun();
    going_back_.OnBegun();
    sequence_.Begin(now);
  }
}

// Of a job of which only checkpoints are stored, all that was trained since the last would be gone.
void JobController::OnSuspendRequested(const SuspendRequested& event, TimePoint now) {
  const bool is_stored = !settings_.only_checkpoints || !ready_ ||
                         state_.step == Step::kEvaluating || state_.step == Step::kExporting;
  if (is_stored || event.at_once) {
    return End(Phase::kSuspended, event.reason);
  }
  if (!suspension_) {
    suspension_ = Suspension{.reason = event.reason,
                             .deadline = now + kLastCheckpoint,
                             .checkpoint = state_.checkpoint.snapshot};
    sequence_.RequestCheckpoint(now);
  }
}

void JobController::SuspendWhenStored(TimePoint now) {
  if (suspension_ &&
      (now >= suspension_->deadline || state_.checkpoint.snapshot != suspension_->checkpoint)) {
    End(Phase::kSuspended, suspension_->reason);
  }
}

void JobController::CheckStart(TimePoint now) {
  if (ready_ || !start_watch_.IsOver(now)) {
    return;
  }
  const std::string why = "within spec.runPolicy.startDeadline, " +
                          SecondsText(*settings_.start_deadline) +
                          ", the job could not start: " + start_watch_.Missing();
  if (settings_.on_start_deadline == OnStartDeadline::kFail) {
    return End(Phase::kFailed, why);
  }
  Release(why);
}

// So that of jobs that do not fit beside each other one can start.
void JobController::Release(const std::string& why) {
  state_.released = true;
  ++state_.releases;
  const std::string text = why + "; it has released its pods, and tries again " +
                           SecondsText(ReleaseWait(state_.job_uid, state_.releases)) +
                           " after they have ended";
  outbox_.Tell(Note::Kind::kReleased, state_.epoch, text);
  End(Phase::kSuspended, text);
}

void JobController::OnTimer(TimePoint now) {
  SuspendWhenStored(now);
  if (!IsFinal(state_.phase)) {
    if (std::string why = deadlines_.WhyOver(); !why.empty()) {
      End(Phase::kFailed, std::move(why));
    }
  }
  if (!IsFinal(state_.phase)) {
    Settle(now);
  }
  if (!IsFinal(state_.phase)) {
    CheckStart(now);
  }
  if (IsFinal(state_.phase)) {
    finished_ = lead_out_.Step(state_.message, now);
    if (finished_ && state_.released) {
      begins_again_at_ = now + ReleaseWait(state_.job_uid, state_.releases);
    }
    return;
  }
  going_back_.OnTimer();
  if (!going_back_.ending()) {
    roster_.StartDue(now);
  }
  sequence_.OnTimer(now);
}

void JobController::Settle(TimePoint now) {
  OnSettled(placement_.Settle(now), now);
  if (placement_.TakeRolledBack()) {
    sequence_.RollBack();
  }
  placement_.PublishChanges();
  if (ready_) {
    sequence_.OnRecordsChanged();
  }
  BeginWhenReady(now);
}

void JobController::OnDiverged(const std::string& found, TimePoint now) {
  if (IsFinal(state_.phase) || !ready_) {
    return;  // it is of what has been undone
  }
  const absl::Status failed = going_back_.OnDiverged(found, now);
  FailOn(failed, EndOfDivergence(settings_, state_));
  StopIfEnding();
}

void JobController::OnSettled(const absl::Status& status, TimePoint now) {
  if (!status.ok()) {
    const bool any_left = placement_.MayGoBackLater();
    FailOn(going_back_.OnLostBucket(status, now), any_left ? EndKind::kOther : EndKind::kAllLost);
    StopIfEnding();
  }
}

void JobController::StopIfEnding() {
  if (going_back_.ending()) {
    ready_ = false;
    alarms_.Clear();
  }
}

void JobController::OnSpecChanged(const JobSettings& settings, TimePoint now) {
  settings_.active_deadline = settings.active_deadline;
  settings_.epoch_deadline = settings.epoch_deadline;
  settings_.start_deadline = settings.start_deadline;
  settings_.on_start_deadline = settings.on_start_deadline;
  settings_.epochs = settings.epochs;
  settings_.target_accuracy = settings.target_accuracy;
  sequence_.OnIntervalChanged(
      std::exchange(settings_.checkpoint_interval, settings.checkpoint_interval));
  settings_.restart_limit = settings.restart_limit;
  settings_.restart_backoff = settings.restart_backoff;
  settings_.failure_rules = settings.failure_rules;
  settings_.on_divergence = settings.on_divergence;
  Scale(settings.workers, now);
}

void JobController::FailOn(const absl::Status& status, EndKind end) {
  if (!status.ok()) {
    End(Phase::kFailed, std::string(status.message()), end);
  }
}

void JobController::FailOnLoss(const absl::Status& status) {
  FailOn(status, absl::IsResourceExhausted(status) ? EndKind::kOutOfRestarts : EndKind::kOther);
}

void JobController::End(Phase phase, std::string message, EndKind end) {
  if (IsFinal(state_.phase)) {
    return;
  }
  state_.phase = phase;
  state_.message = std::move(message);
  state_.end = end;
  outbox_.StateChanged();
}

JobController::TimePoint JobController::NextTimer(TimePoint now) const {
  TimePoint next = now + std::chrono::hours(1);
  const auto consider = [&](std::optional<TimePoint> time) {
    if (time && *time < next) {
      next = *time;
    }
  };
  if (finished_) {
    return next;
  }
  if (IsFinal(state_.phase)) {
    return lead_out_.deadline();
  }
  if (!going_back_.ending()) {
    consider(roster_.NextTimer());
  }
  consider(placement_.NextTimer());
  consider(sequence_.NextTimer());
  if (suspension_) {
    consider(suspension_->deadline);
  }
  if (!ready_) {
    consider(start_watch_.NextTimer());
  }
  consider(deadlines_.Next(last_advance_, ready_));
  return next;
}

std::vector<StartProcess> JobController::Wanted() const {
  std::vector<StartProcess> wanted;
  for (const Roster::Slot& slot : roster_.slots()) {
    const bool starts =
        slot.liveness == Roster::Liveness::kStarting && !lead_out_.HasStopped(slot.id.role);
    if (!finished_ && (starts || slot.liveness == Roster::Liveness::kRunning)) {
      wanted.push_back({.id = slot.id, .generation = roster_.GenerationOf(slot.id)});
    }
  }
  return wanted;
}

JobReport JobController::Report() const {
  return reporter_.Report(
      {.now = last_advance_, .handles = wake_at_.has_value(), .goes_on = goes_on_});
}

std::string JobController::AddressOf(MemberId id) const {
  return roster_.IsRunning(id) ? roster_.At(id).address : "";
}

}  // namespace adamant::controller
