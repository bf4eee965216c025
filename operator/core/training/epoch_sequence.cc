#include "operator/core/training/epoch_sequence.h"

#include <algorithm>
#include <string>
#include <utility>

#include "operator/core/diagnosis/best_epoch.h"
#include "operator/core/diagnosis/chance.h"
#include "operator/core/diagnosis/recovery.h"
#include "operator/core/diagnosis/reservations.h"
#include "services/common/base/failpoint.h"

namespace adamant::controller {

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
      checkpoints_(settings, state, outbox, processes, placement.configurations(), snapshots_) {}

void EpochSequence::Enter(Step step) {
  state_.step = step;
  state_.phase = step == Step::kTraining       ? Phase::kRunning
                 : step == Step::kFirstWeights ? Phase::kStarting
                                               : Phase::kEvaluating;
  outbox_.StateChanged();
}

void EpochSequence::Abandon() {
  checkpoints_.Close();
  snapshots_.Drop();
  snapshots_.Keep(0);
  open_parts_.clear();
  unflushed_workers_.clear();
  export_retry_.reset();
  told_chance_ = false;
}

// A job that may have to go back needs something to go back to: nothing is pushed before an epoch
// is open, so this holds the weights that it begins with.
void EpochSequence::TakeFirstWeights() {
  Enter(Step::kFirstWeights);
  generations_ = placement_.configurations().Generations();
  snapshots_.Take(++state_.last_snapshot);
}

void EpochSequence::Begin(TimePoint now) {
  switch (state_.step) {
    case Step::kFirstWeights:
      return TakeFirstWeights();
    case Step::kTraining:
      Enter(Step::kTraining);
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
      Enter(Step::kExporting);
      snapshots_.Need();
      return StartExport(now);
  }
}

void EpochSequence::RollBack() {
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
      StoreUnattended(ended);
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
  unflushed_workers_.clear();
  open_parts_.clear();
  meter_.OnUnattended();
  state_.epoch = epoch - 1;
  OpenNext(now);
}

// What the controller that left this epoch had seen of it stays known.
void EpochSequence::StoreUnattended(const UnattendedEpoch& ended) {
  EpochResult row = ended.epoch == state_.row.epoch ? state_.row : EpochResult{};
  row.epoch = ended.epoch;
  row.snapshot = 0;
  row.counted = ended.counted;
  row.left = ended.left;
  row.retrained = ended.retrained;
  row.restarts = state_.restarts;
  row.attempt = state_.recovery.attempt;
  state_.recovery.counted_examples += row.counted;
  state_.updates_lost += row.updates_lost;
  ADAMANT_FAILPOINT("epoch/store_unattended");
  outbox_.Store(row);
  outbox_.Add(EpochDone{row});
}

void EpochSequence::OnHeldUp() {
  checkpoints_.GiveUp("the controller was held up");
  CloseAgain();
}

void EpochSequence::OnDataServerLost() { CloseAgain(); }

// What the data tier has said is not known to hold any more: it is asked again whether it waits.
void EpochSequence::CloseAgain() {
  if (state_.step == Step::kClosing || state_.step == Step::kFlushing ||
      state_.step == Step::kSnapshot || state_.step == Step::kEvaluating) {
    unflushed_workers_.clear();
    snapshots_.Drop();
    StartClosing();
  }
}

bool EpochSequence::HasMore() const {
  return state_.step == Step::kExporting && !IsLast(state_.row);
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

std::optional<ControllerMessage> EpochSequence::CommandFor(SlotId id) const {
  switch (state_.step) {
    case Step::kTraining:
      if (id.role == Role::kDataServer) {
        return OpenEpoch{state_.epoch};
      }
      break;
    case Step::kClosing:
      if (id.role == Role::kDataServer) {
        return CloseEpoch{state_.epoch};
      }
      break;
    case Step::kFlushing:
      if (id.role == Role::kWorker && unflushed_workers_.contains(id.slot)) {
        return FlushWorker{state_.epoch};
      }
      break;
    case Step::kEvaluating:
      if (id.role == Role::kDataServer && state_.part_owner.front() == id.slot) {
        return Evaluate{.epoch = state_.epoch, .snapshot = state_.row.snapshot};
      }
      break;
    case Step::kSnapshot:
    case Step::kExporting:
    case Step::kFirstWeights:
      break;
  }
  return std::nullopt;
}

void EpochSequence::Repeat(SlotId id) {
  if (const auto command = CommandFor(id)) {
    processes_.SendTo(id, *command);
  }
  if (id.role == Role::kParameterServer) {
    snapshots_.Repeat(id.slot);
  } else if (id.role == Role::kWorker && state_.step == Step::kTraining) {
    checkpoints_.OnWorkerJoined(id.slot);
  }
}

void EpochSequence::RepeatAll(Role role) {
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.id.role == role && slot.liveness == ProcessTable::Liveness::kRunning) {
      Repeat(slot.id);
    }
  }
}

void EpochSequence::OnEpochEnded(const EpochEnded& message) {
  if (state_.step == Step::kTraining && message.epoch == state_.epoch) {
    outbox_.Tell(Note::Kind::kEpochClosing, state_.epoch, "enough of the epoch is acknowledged");
    StartClosing();
  }
}

void EpochSequence::StartClosing() {
  ADAMANT_FAILPOINT("epoch/close");
  Enter(Step::kClosing);
  checkpoints_.Close();  // one under way is overtaken by the epoch's own snapshot
  watch_.OnEpochClosed();
  snapshots_.Keep(0);
  if (state_.row.epoch != state_.epoch) {
    state_.row = {};
    state_.row.epoch = state_.epoch;
  }
  state_.row.counted = state_.row.left = state_.row.retrained = 0;
  for (std::uint32_t part = 0; part < state_.part_owner.size(); ++part) {
    open_parts_.insert(part);
  }
  RepeatAll(Role::kDataServer);
}

void EpochSequence::OnPartClosed(const PartClosed& message) {
  if (state_.step != Step::kClosing || message.epoch != state_.epoch ||
      open_parts_.erase(message.part) == 0) {
    return;
  }
  state_.row.counted += message.counted_examples;
  state_.row.left += message.left_examples;
  state_.row.retrained += message.retrained_examples;
  if (open_parts_.empty()) {
    if (state_.row.seconds == 0) {
      state_.row.seconds = std::chrono::duration<double>(state_.epoch_active).count();
    }
    StartFlushing();
  }
}

void EpochSequence::StartFlushing() {
  ADAMANT_FAILPOINT("epoch/flush");
  Enter(Step::kFlushing);
  generations_ = placement_.configurations().Generations();
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.id.role == Role::kWorker && processes_.MayPush(slot)) {
      unflushed_workers_.insert(slot.id.slot);
    }
  }
  if (unflushed_workers_.empty()) {
    return CloseRow();
  }
  RepeatAll(Role::kWorker);
}

void EpochSequence::OnWorkerFlushed(std::uint32_t worker, const WorkerFlushed& message) {
  if (state_.step == Step::kFlushing && message.epoch == state_.epoch) {
    Flushed(worker);
  }
}

void EpochSequence::OnPushesPaused(std::uint32_t worker,
                                   const PushesPaused& message,
                                   TimePoint now) {
  checkpoints_.OnPushesPaused(worker, message, now);
}

void EpochSequence::OnWorkerLost(std::uint32_t worker) {
  checkpoints_.OnWorkerLost(worker);
  Flushed(worker);
}

void EpochSequence::Flushed(std::uint32_t worker) {
  if (unflushed_workers_.erase(worker) > 0 && unflushed_workers_.empty() &&
      state_.step == Step::kFlushing) {
    CloseRow();
  }
}

void EpochSequence::CloseRow() {
  if (generations_ != placement_.configurations().Generations()) {
    return StartFlushing();  // workers send again what was rolled back
  }
  if (!state_.row.is_measured()) {
    meter_.Fill(state_.row);
    measured_epoch_ = state_.epoch;
  }
  CountLost();
  StartSnapshot();
}

// Workers find out what is lost when they send it again, perhaps after the row was measured. What
// they say to a new controller is of all their time: a row that another has measured has it.
void EpochSequence::CountLost() {
  state_.row.updates_lost += std::exchange(state_.lost_with_all, 0);
  const std::uint64_t found = meter_.TakeUpdatesLost();
  if (measured_epoch_ == state_.epoch) {
    state_.row.updates_lost += found;
  }
}

void EpochSequence::StartSnapshot() {
  ADAMANT_FAILPOINT("epoch/snapshot");
  Enter(Step::kSnapshot);
  if (state_.row.snapshot == 0) {
    state_.row.snapshot = ++state_.last_snapshot;
  }
  snapshots_.Take(state_.row.snapshot);
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
  if (state_.step == Step::kSnapshot) {
    KeepNewest(state_, state_.epoch + 1, 0);
    state_.recovery.newest.examples += state_.row.counted;
    ADAMANT_FAILPOINT("epoch/evaluate");
    Enter(Step::kEvaluating);
    RepeatAll(Role::kDataServer);
  } else if (state_.step == Step::kFirstWeights) {
    KeepFirst(state_);
    state_.epoch_active = std::chrono::milliseconds(0);
    snapshots_.Drop();
    state_.step = Step::kTraining;
    Begin(now);
  } else {
    OnCheckpoint(now);
  }
  return absl::OkStatus();
}

void EpochSequence::OnCheckpoint(TimePoint now) {
  checkpoints_.OnStored(now);
  KeepNewest(state_, state_.epoch, meter_.counted());
  if (std::optional<KeptModel> healthy = watch_.OnCheckpoint()) {
    KeepHealthy(state_, *std::move(healthy));
    outbox_.StateChanged();
  }
  snapshots_.Keep(watch_.candidate());
}

bool EpochSequence::IsLast(const EpochResult& row) const {
  return row.epoch >= settings_.epochs ||
         (settings_.target_accuracy && row.top1 >= *settings_.target_accuracy);
}

std::optional<std::string> EpochSequence::OnEvaluated(const Evaluated& message, TimePoint now) {
  if (state_.step != Step::kEvaluating || message.epoch != state_.epoch ||
      message.snapshot != state_.row.snapshot) {
    return std::nullopt;
  }
  CountLost();
  EpochResult& row = state_.row;
  row.validated = message.examples;
  if (message.examples > 0) {
    const auto examples = static_cast<double>(message.examples);
    row.top1 = static_cast<double>(message.correct) / examples;
    row.validation_loss = message.loss_sum / examples;
  }
  row.evaluation_seconds = std::chrono::duration<double>(state_.epoch_active).count() - row.seconds;
  row.restarts = state_.restarts;
  row.attempt = state_.recovery.attempt;
  state_.updates_lost += row.updates_lost;
  ADAMANT_FAILPOINT("epoch/store_row");
  outbox_.Store(row);
  outbox_.Add(EpochDone{row});
  const std::uint64_t counted = state_.recovery.counted_examples + row.counted;
  state_.at_chance = IsAtChance(row, message.most_frequent) ||
                     HasChanceLoss(row, message.most_frequent, counted, settings_.chance_loss) ||
                     IsUselessByHeart(row, message.most_frequent, settings_.chance_loss);
  TellChance(message.most_frequent);
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
  if (IsLast(row)) {
    if (!ReservationsOf(settings_, state_).empty()) {
      outbox_.Tell(Note::Kind::kAlarm, row.epoch, ClosingWords(settings_, state_));
    }
    state_.step = Step::kExporting;
    return Begin(now);
  }
  OpenNext(now);
}

void EpochSequence::TellChance(std::uint64_t most_frequent) {
  if (state_.at_chance && !std::exchange(told_chance_, true)) {
    outbox_.Tell(Note::Kind::kAlarm,
                 state_.epoch,
                 ChanceWarning(state_.row, most_frequent, settings_.chance_loss));
  }
  const std::string one_class = OneClassWarning(state_.row, most_frequent);
  if (state_.row.epoch == 1 && !one_class.empty()) {
    outbox_.Tell(Note::Kind::kAlarm, state_.epoch, one_class);
  }
}

// Waits for primaries that are still to store the model.
void EpochSequence::StartExport(TimePoint now) {
  if (!snapshots_.IsReadable()) {
    return ExportAgain(now);
  }
  export_disturbed_ = false;
  ADAMANT_FAILPOINT("epoch/export");
  outbox_.Add(Export{state_.evaluated_snapshot});
}

void EpochSequence::OnRecordsChanged() {
  checkpoints_.OnRecordsChanged();
  // A server that is asked again stores anew what is of an earlier generation, perhaps when
  // training has begun.
  if (state_.step == Step::kFirstWeights &&
      generations_ != placement_.configurations().Generations()) {
    return TakeFirstWeights();
  }
  if ((state_.step == Step::kSnapshot || state_.step == Step::kEvaluating) &&
      generations_ != placement_.configurations().Generations()) {
    snapshots_.Drop();
    return StartFlushing();
  }
  if (snapshots_.Follow()) {
    export_disturbed_ = true;
  }
}

bool EpochSequence::OnExported(const Exported& exported) const {
  return state_.step == Step::kExporting && exported.snapshot == state_.evaluated_snapshot;
}

void EpochSequence::OnTimer(TimePoint now) {
  snapshots_.OnTimer(now);
  checkpoints_.OnTimer(now);
  if (export_retry_ && *export_retry_ <= now) {
    export_retry_.reset();
    StartExport(now);
  }
}

std::optional<EpochSequence::TimePoint> EpochSequence::NextTimer() const {
  std::optional<TimePoint> next;
  for (const std::optional<TimePoint>& time :
       {snapshots_.NextTimer(), checkpoints_.NextTimer(), export_retry_}) {
    if (time && (!next || *time < *next)) {
      next = time;
    }
  }
  return next;
}

}  // namespace adamant::controller
