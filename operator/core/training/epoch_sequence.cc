#include "operator/core/training/epoch_sequence.h"

#include <algorithm>
#include <string>
#include <utility>

#include "operator/core/diagnosis/best_epoch.h"
#include "operator/core/diagnosis/recovery.h"
#include "operator/core/diagnosis/reservations.h"
#include "operator/core/state/sent_again.h"
#include "operator/core/state/step.h"
#include "services/common/base/failpoint.h"

namespace adamant::controller {
namespace {

bool IsLast(const JobSettings& settings, const EpochResult& row) {
  return row.epoch >= settings.epochs ||
         (settings.target_accuracy && row.top1 >= *settings.target_accuracy);
}

}  // namespace

EpochSequence::EpochSequence(const JobSettings& settings,
                             JobState& state,
                             Outbox& outbox,
                             ProcessTable& processes,
                             Parts& parts,
                             Placement& placement,
                             TrainingMeter& meter,
                             DivergenceWatch& watch)
    : settings_(settings),
      state_(state),
      outbox_(outbox),
      processes_(processes),
      parts_(parts),
      placement_(placement),
      meter_(meter),
      watch_(watch),
      snapshots_(settings, state, outbox, processes, placement.configurations()),
      checkpoints_(settings, state, outbox, processes, placement.configurations(), snapshots_),
      results_(settings, state, outbox, meter),
      closing_(state, outbox, processes, placement.configurations(), snapshots_, results_),
      exports_(state, outbox, snapshots_) {}

void EpochSequence::Abandon() {
  checkpoints_.Close();
  snapshots_.Drop();
  snapshots_.Keep(0);
  closing_.Abandon();
  exports_.Abandon();
  results_.Restart();
}

// A job that may have to go back needs something to go back to: nothing is pushed before an epoch
// is open, so this holds the weights that it begins with.
void EpochSequence::TakeFirstWeights() {
  EnterStep(Step::kFirstWeights, state_, outbox_);
  generations_ = placement_.configurations().Generations();
  snapshots_.Take(++state_.last_snapshot);
}

void EpochSequence::Begin(TimePoint now) {
  switch (state_.step) {
    case Step::kFirstWeights:
      return TakeFirstWeights();
    case Step::kTraining:
      EnterStep(Step::kTraining, state_, outbox_);
      meter_.StartEpoch(state_.epoch);
      checkpoints_.Open(now);
      outbox_.Tell(Note::Kind::kEpochOpened,
                   state_.epoch,
                   "epoch " + std::to_string(state_.epoch) + " of " +
                       std::to_string(std::max<std::uint64_t>(settings_.epochs, state_.epoch)));
      RepeatAll(Role::kDataServer);
      return;
    case Step::kClosing:
    case Step::kFlushing:
    case Step::kSnapshot:
    case Step::kEvaluating:  // only if the data tier still waits: else workers push what is copied
      return StartClosing();
    case Step::kExporting:
      return exports_.Begin(now);
  }
}

void EpochSequence::OnWentBack() {
  if (!EndedWithCheckpoint(state_)) {  // taken within this epoch, or at the end of the one before
    const bool made_anew = state_.checkpoint.buckets.empty();
    state_.step = made_anew ? Step::kFirstWeights : Step::kTraining;
    state_.row = {};
  }
  outbox_.StateChanged();
}

void EpochSequence::Adopt(const DataServerProgress& progress, TimePoint now) {
  const DataEpoch epoch = progress.decided_epoch;
  // Data servers may know of more epochs than the job has now.
  const std::uint64_t most = std::max(settings_.epochs, state_.schedule_epochs);
  if (epoch <= state_.epoch || epoch > most || state_.step == Step::kExporting) {
    return;
  }
  std::uint64_t lost = epoch - state_.epoch;
  for (const UnattendedEpoch& ended : progress.unattended) {
    if (ended.epoch >= state_.epoch && ended.epoch < epoch) {
      results_.StoreUnattended(ended);
      --lost;
    }
  }
  const std::string which = "epoch " + std::to_string(state_.epoch) +
                            (epoch == state_.epoch + 1 ? "" : " to " + std::to_string(epoch - 1));
  outbox_.Tell(Note::Kind::kAlarm,
               state_.epoch,
               lost == 0 ? which + " ended while no controller was there, and has no accuracy"
                         : "results of " + which + " are lost: a controller that could not store " +
                               "them has opened epoch " + std::to_string(epoch));
  checkpoints_.GiveUp("the data servers have opened a later epoch");
  closing_.Abandon();
  meter_.OnUnattended();
  state_.epoch = epoch - 1;
  OpenNext(now);
}

void EpochSequence::OnHeldUp() {
  checkpoints_.GiveUp("the controller was held up");
  closing_.StartAgain();
}

void EpochSequence::OnDataServerLost() { closing_.StartAgain(); }

bool EpochSequence::HasMore() const {
  return state_.step == Step::kExporting && !IsLast(settings_, state_.row);
}

void EpochSequence::GoOn() {
  ++state_.epoch;
  state_.epoch_active = std::chrono::milliseconds(0);
  state_.earlier_loss = state_.row.is_measured() ? state_.row.training_loss : 0;
  state_.row = {};
  state_.step = Step::kTraining;
}

void EpochSequence::OpenNext(TimePoint now) {
  ADAMANT_FAILPOINT("epoch/open");
  GoOn();
  snapshots_.Drop();
  if (parts_.Rebalance()) {
    placement_.Publish();
  }
  Begin(now);
}

void EpochSequence::Repeat(SlotId id) {
  if (id.role == Role::kDataServer && state_.step == Step::kTraining) {
    processes_.SendTo(id, OpenEpoch{state_.epoch});
  }
  closing_.Repeat(id);
  if (id.role == Role::kParameterServer) {
    snapshots_.Repeat(id.slot);
  } else if (id.role == Role::kWorker && state_.step == Step::kTraining) {
    checkpoints_.OnWorkerJoined(id.slot);
  }
}

void EpochSequence::RepeatAll(Role role) {
  processes_.ForEachRunning(role, [this](SlotId id) { Repeat(id); });
}

void EpochSequence::OnEpochEnded(const EpochEnded& message) {
  if (state_.step == Step::kTraining && message.epoch == state_.epoch) {
    outbox_.Tell(Note::Kind::kEpochClosing, state_.epoch, "enough of the epoch is acknowledged");
    StartClosing();
  }
}

void EpochSequence::StartClosing() {
  checkpoints_.Close();  // one under way is overtaken by the epoch's own snapshot
  watch_.OnEpochClosed();
  snapshots_.Keep(0);
  closing_.Start();
}

void EpochSequence::OnPushesPaused(std::uint32_t worker,
                                   const PushesPaused& message,
                                   TimePoint now) {
  checkpoints_.OnPushesPaused(worker, message, now);
}

void EpochSequence::OnWorkerLost(std::uint32_t worker) {
  checkpoints_.OnWorkerLost(worker);
  closing_.OnWorkerLost(worker);
}

absl::Status EpochSequence::OnSnapshotTaken(std::uint32_t server,
                                            const SnapshotTaken& message,
                                            TimePoint now) {
  const absl::StatusOr<bool> completed = snapshots_.OnTaken(server, message, now);
  if (!completed.ok() && state_.step == Step::kTraining) {
    checkpoints_.GiveUp(std::string(completed.status().message()));
    return absl::OkStatus();
  }
  if (!completed.ok() || !*completed) {
    return completed.status();
  }
  OnSnapshotStored(now);
  return absl::OkStatus();
}

void EpochSequence::OnSnapshotStored(TimePoint now) {
  if (state_.step == Step::kSnapshot) {
    KeepNewest(state_, state_.epoch + 1, 0);
    state_.recovery.newest.examples += state_.row.counted;
    closing_.StartEvaluating();
  } else if (state_.step == Step::kFirstWeights) {
    KeepFirst(state_);
    state_.epoch_active = std::chrono::milliseconds(0);
    state_.totals = {};
    snapshots_.Drop();
    state_.step = Step::kTraining;
    Begin(now);
  } else {
    OnCheckpoint(now);
  }
}

void EpochSequence::OnCheckpoint(TimePoint now) {
  checkpoints_.OnStored(now);
  TellSentAgain(settings_, state_, outbox_);
  KeepNewest(state_, state_.epoch, meter_.counted());
  if (std::optional<KeptModel> healthy = watch_.OnCheckpoint()) {
    KeepHealthy(state_, *std::move(healthy));
    outbox_.StateChanged();
  }
  snapshots_.Keep(watch_.candidate());
}

std::optional<std::string> EpochSequence::OnEvaluated(const Evaluated& message, TimePoint now) {
  if (!results_.OnEvaluated(message)) {
    return std::nullopt;
  }
  const EpochResult& row = state_.row;
  std::optional<std::string> diverged = watch_.Judge(row, state_.at_chance);
  if (!diverged || settings_.on_divergence.action == OnDivergence::Action::kContinue) {
    Accept(!diverged && watch_.IsHealthy(row, state_.at_chance), now);
  }
  return diverged;
}

void EpochSequence::Accept(bool healthy, TimePoint now) {
  const EpochResult& row = state_.row;
  state_.accuracy = row.top1;
  state_.evaluated_snapshot = row.snapshot;
  state_.recovery.counted_examples += row.counted;
  KeepNewest(state_, row.epoch + 1, 0);
  if (healthy) {
    double& best = state_.recovery.best_top1;
    best = std::max(best, row.top1);
    KeepHealthy(state_, ModelOf(state_, row.epoch + 1, 0));
  }
  NoteResult(state_, row);
  state_.recovery.sign = watch_.SignOfHighRate();
  if (IsLast(settings_, row)) {
    if (!ReservationsOf(settings_, state_).empty()) {
      outbox_.Tell(Note::Kind::kAlarm, row.epoch, ClosingWords(settings_, state_));
    }
    state_.step = Step::kExporting;
    return Begin(now);
  }
  OpenNext(now);
}

void EpochSequence::OnConfigurationsChanged() {
  checkpoints_.OnConfigurationsChanged();
  // A server that is asked again stores anew what is of an earlier generation, perhaps when
  // training has begun.
  if (state_.step == Step::kFirstWeights &&
      generations_ != placement_.configurations().Generations()) {
    return TakeFirstWeights();
  }
  if (closing_.OnConfigurationsChanged()) {
    return;
  }
  if (snapshots_.Follow()) {
    exports_.OnDisturbed();
  }
}

void EpochSequence::OnTimer(TimePoint now) {
  if (snapshots_.OnTimer(now)) {
    OnSnapshotStored(now);
  }
  checkpoints_.OnTimer(now);
  exports_.OnTimer(now);
}

std::optional<EpochSequence::TimePoint> EpochSequence::NextTimer() const {
  std::optional<TimePoint> next;
  for (const std::optional<TimePoint>& time :
       {snapshots_.NextTimer(), checkpoints_.NextTimer(), exports_.NextTimer()}) {
    if (time && (!next || *time < *next)) {
      next = time;
    }
  }
  return next;
}

}  // namespace adamant::controller
