#include "operator/core/training/training_run.h"

#include "operator/core/diagnosis/chance.h"
#include "operator/core/diagnosis/job_length.h"
#include "operator/core/diagnosis/recovery.h"
#include "operator/core/diagnosis/reservations.h"

namespace adamant::controller {
namespace {

// A job that has learned nothing may have lost what it had learned.
std::string OrLost(const JobSettings& settings, const JobState& state) {
  if (const std::string lost = LostWithCopies(settings, state); !lost.empty()) {
    return "; or begin the job anew: " + lost;
  }
  const bool went_back = state.recovery.attempt > 1;
  return state.restores > 0 && !went_back && state.recovery.divergence.empty()
             ? "; or, if all its processes were killed, begin the job anew: what was "
               "acknowledged last was lost with them"
             : "";
}

std::string DivergedIn(DataEpoch epoch, const std::string& found) {
  return "training diverged in epoch " + std::to_string(epoch) + ": " + found;
}

}  // namespace

TrainingRun::TrainingRun(const JobSettings& settings,
                         JobState& state,
                         Outbox& outbox,
                         ProcessTable& processes,
                         ProcessStarter& starter,
                         Placement& placement,
                         Outcome& outcome)
    : settings_(settings),
      state_(state),
      processes_(processes),
      starter_(starter),
      placement_(placement),
      outcome_(outcome),
      outbox_(outbox),
      alarms_(outbox),
      parts_(settings, state, outbox, processes),
      meter_(state),
      watch_(settings, state, outbox, meter_),
      sequence_(settings, state, outbox, processes, parts_, placement, meter_, watch_),
      going_back_(settings, state, outbox, processes, placement, sequence_, meter_, watch_) {}

void TrainingRun::Resume(bool anew) {
  const bool goes_back = anew && going_back_.Resume();
  TakeRates(settings_, state_);
  if (goes_back) {
    going_back_.TellResumed();
  }
  if (sequence_.HasMore()) {
    // Of one that has succeeded checkpoints alone are kept; the newest is of its last epoch.
    state_.recovery.going_back = state_.recovery.going_back || state_.phase == Phase::kSucceeded;
    sequence_.GoOn();
  }
}

void TrainingRun::OnJoined(const Join& join, TimePoint now) {
  if (join.id.role == Role::kParameterServer) {
    placement_.OnJoined();
  } else if (join.id.role == Role::kWorker && join.incarnation != 0) {
    meter_.OnRejoined(join.id.slot, join.incarnation);
  }
  PublishMembers(now);
  if (begun_) {
    sequence_.Repeat(join.id);
  }
}

void TrainingRun::OnMessage(SlotId from, const MemberMessage& message, TimePoint now) {
  if (!begun_) {
    return;
  }
  switch (from.role) {
    case Role::kParameterServer:
      if (const auto* taken = std::get_if<SnapshotTaken>(&message)) {
        outcome_.FailOn(sequence_.OnSnapshotTaken(from.slot, *taken, now));
      }
      return;
    case Role::kDataServer:
      return OnDataMessage(message, now);
    case Role::kWorker:
      if (const auto* flushed = std::get_if<WorkerFlushed>(&message)) {
        sequence_.OnWorkerFlushed(from.slot, *flushed);
      } else if (const auto* paused = std::get_if<PushesPaused>(&message)) {
        sequence_.OnPushesPaused(from.slot, *paused, now);
      }
      return;
  }
}

void TrainingRun::OnDataMessage(const MemberMessage& message, TimePoint now) {
  if (const auto* ended = std::get_if<EpochEnded>(&message)) {
    sequence_.OnEpochEnded(*ended);
  } else if (const auto* closed = std::get_if<PartClosed>(&message)) {
    sequence_.OnPartClosed(*closed);
  } else if (const auto* evaluated = std::get_if<Evaluated>(&message)) {
    if (const auto found = sequence_.OnEvaluated(*evaluated, now)) {
      OnDiverged(evaluated->epoch, DivergedIn(evaluated->epoch, *found), now);
    }
  }
}

bool TrainingRun::OnWorker(SlotId from, const WorkerProgress& progress, TimePoint now) {
  if (meter_.OnWorker(from.slot, processes_.IncarnationOf(from), progress, now)) {
    outbox_.StateChanged();
  }
  const std::optional<std::string> found = watch_.OnWorker(progress, now);
  if (!found || !begun_) {
    return false;
  }
  OnDiverged(state_.epoch, DivergedIn(state_.epoch, *found), now);
  return true;
}

void TrainingRun::OnDataServer(SlotId from, const DataServerProgress& progress, TimePoint now) {
  meter_.OnDataServer(from.slot, progress, now);
  if (begun_ && state_.part_owner.front() == from.slot) {
    sequence_.Adopt(progress, now);
  }
}

void TrainingRun::OnAlarm(SlotId server, const std::string& alarm, TimePoint now) {
  const bool counting = begun_ && (state_.step == Step::kTraining || state_.step == Step::kClosing);
  const DiskAlarms::Progress progress = {
      .begun = begun_, .counting = counting, .counted = meter_.counted()};
  if (const std::string why = alarms_.OnAlarm(server, alarm, progress, now); !why.empty()) {
    outcome_.End(Phase::kFailed, why);
  }
}

void TrainingRun::OnDiverged(DataEpoch epoch, const std::string& found, TimePoint now) {
  if (outcome_.IsDecided() || !begun_) {
    return;  // it is of what has been undone
  }
  const absl::Status failed = going_back_.OnDiverged(epoch, found, now);
  outcome_.FailOn(failed, EndOfDivergence(settings_, state_));
  StopIfEnding();
}

void TrainingRun::OnExported(const Exported& event, TimePoint now) {
  if (outcome_.IsDecided()) {
    return;
  }
  const std::optional<absl::Status> written = sequence_.OnExported(event, now);
  if (!written.has_value()) {
    return;
  }
  if (written->ok()) {
    EndWithModel();
  } else {
    outcome_.End(Phase::kFailed, "cannot write the model: " + std::string(written->message()));
  }
}

void TrainingRun::EndWithModel() {
  if (!state_.at_chance) {
    return outcome_.End(
        Phase::kSucceeded, ClosingWords(settings_, state_), EndOfSuccess(settings_, state_));
  }
  const std::string lost = OrLost(settings_, state_);
  outcome_.End(
      Phase::kFailed,
      ChanceFailure(
          state_.row, state_.recovery, settings_.chance_loss, HindrancesOf(settings_, state_)) +
          AfterGoingBack(settings_, state_) + lost,
      lost.empty() ? EndKind::kDidNotLearn : EndKind::kLostLearned);
}

void TrainingRun::OnLost(SlotId id, TimePoint now) {
  alarms_.Forget(id);
  switch (id.role) {
    case Role::kParameterServer:
      placement_.OnLost(id.slot, now);
      going_back_.OnServerLost(now);
      return StopIfEnding();
    case Role::kDataServer:
      meter_.OnDataServerLost(id.slot);
      if (begun_) {
        sequence_.OnDataServerLost();
      }
      return;
    case Role::kWorker:
      placement_.OnWorkerLost();
      return sequence_.OnWorkerLost(id.slot);
  }
}

void TrainingRun::OnHeldUp(TimePoint now) {
  alarms_.GrantTime(now);
  if (begun_) {
    sequence_.OnHeldUp();
  }
}

void TrainingRun::PublishMembers(TimePoint now) {
  const bool moved = begun_ && parts_.Reassign();
  OnSettled(placement_.Settle(now), now);
  placement_.Publish();
  if (moved) {
    sequence_.RepeatAll(Role::kDataServer);
  }
}

void TrainingRun::Settle(TimePoint now) {
  OnSettled(placement_.Settle(now), now);
  if (placement_.TakeReturned()) {
    sequence_.OnWentBack();
  }
  placement_.PublishChanges();
  if (begun_) {
    sequence_.OnConfigurationsChanged();
  }
  BeginWhenReady(now);
}

void TrainingRun::OnSettled(const absl::Status& status, TimePoint now) {
  if (!status.ok()) {
    const bool any_left = placement_.checkpoint_return().MayGoBackLater();
    outcome_.FailOn(going_back_.OnLostBucket(status, now),
                    any_left ? EndKind::kOther : EndKind::kAllLost);
    StopIfEnding();
  }
}

void TrainingRun::BeginWhenReady(TimePoint now) {
  if (!begun_ && !outcome_.IsDecided() && placement_.copies().IsComplete(now) && parts_.Started() &&
      processes_.AnyStarted(Role::kWorker)) {
    begun_ = true;
    placement_.OnJobBegun();
    going_back_.OnBegun();
    sequence_.Begin(now);
  }
}

void TrainingRun::StopIfEnding() {
  if (going_back_.ending()) {
    begun_ = false;
    alarms_.Clear();
  }
}

void TrainingRun::OnTimer(TimePoint now) {
  going_back_.OnTimer();
  if (!going_back_.ending()) {
    starter_.StartDue(now);
  }
  sequence_.OnTimer(now);
}

}  // namespace adamant::controller
