#include "operator/core/training/epoch_closing.h"

#include "operator/core/state/step.h"
#include "services/common/base/failpoint.h"

namespace adamant::controller {

EpochClosing::EpochClosing(JobState& state,
                           Outbox& outbox,
                           ProcessTable& processes,
                           const Configurations& configurations,
                           SnapshotCoordinator& snapshots,
                           ResultRecorder& results)
    : state_(state),
      outbox_(outbox),
      processes_(processes),
      configurations_(configurations),
      snapshots_(snapshots),
      results_(results) {}

void EpochClosing::Start() {
  ADAMANT_FAILPOINT("epoch/close");
  EnterStep(Step::kClosing, state_, outbox_);
  results_.Begin();
  for (std::uint32_t part = 0; part < state_.part_owner.size(); ++part) {
    open_parts_.insert(part);
  }
  RepeatAll(Role::kDataServer);
}

void EpochClosing::StartAgain() {
  if (state_.step == Step::kClosing || state_.step == Step::kFlushing ||
      state_.step == Step::kSnapshot || state_.step == Step::kEvaluating) {
    unflushed_workers_.clear();
    snapshots_.Drop();
    Start();
  }
}

void EpochClosing::Abandon() {
  open_parts_.clear();
  unflushed_workers_.clear();
}

std::optional<ControllerMessage> EpochClosing::CommandFor(SlotId id) const {
  switch (state_.step) {
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
    case Step::kTraining:
    case Step::kSnapshot:
    case Step::kExporting:
    case Step::kFirstWeights:
      break;
  }
  return std::nullopt;
}

void EpochClosing::Repeat(SlotId id) {
  if (const auto command = CommandFor(id)) {
    processes_.SendTo(id, *command);
  }
}

void EpochClosing::RepeatAll(Role role) {
  processes_.ForEachRunning(role, [this](SlotId id) { Repeat(id); });
}

void EpochClosing::OnPartClosed(const PartClosed& message) {
  if (state_.step != Step::kClosing || message.epoch != state_.epoch ||
      open_parts_.erase(message.part) == 0) {
    return;
  }
  results_.Add(message);
  if (open_parts_.empty()) {
    results_.OnPartsClosed();
    StartFlushing();
  }
}

void EpochClosing::StartFlushing() {
  ADAMANT_FAILPOINT("epoch/flush");
  EnterStep(Step::kFlushing, state_, outbox_);
  generations_ = configurations_.Generations();
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.id.role == Role::kWorker && processes_.MayPush(slot)) {
      unflushed_workers_.insert(slot.id.slot);
    }
  }
  if (unflushed_workers_.empty()) {
    return OnAllFlushed();
  }
  RepeatAll(Role::kWorker);
}

void EpochClosing::OnWorkerFlushed(std::uint32_t worker, const WorkerFlushed& message) {
  if (state_.step == Step::kFlushing && message.epoch == state_.epoch) {
    Flushed(worker);
  }
}

void EpochClosing::Flushed(std::uint32_t worker) {
  if (unflushed_workers_.erase(worker) > 0 && unflushed_workers_.empty() &&
      state_.step == Step::kFlushing) {
    OnAllFlushed();
  }
}

void EpochClosing::OnAllFlushed() {
  if (generations_ != configurations_.Generations()) {
    return StartFlushing();  // workers send again what was rolled back
  }
  results_.OnWorkersFlushed();
  StartSnapshot();
}

void EpochClosing::StartSnapshot() {
  ADAMANT_FAILPOINT("epoch/snapshot");
  EnterStep(Step::kSnapshot, state_, outbox_);
  if (state_.row.snapshot == 0) {
    state_.row.snapshot = ++state_.last_snapshot;
  }
  snapshots_.Take(state_.row.snapshot);
}

void EpochClosing::StartEvaluating() {
  ADAMANT_FAILPOINT("epoch/evaluate");
  EnterStep(Step::kEvaluating, state_, outbox_);
  RepeatAll(Role::kDataServer);
}

bool EpochClosing::OnConfigurationsChanged() {
  if ((state_.step == Step::kSnapshot || state_.step == Step::kEvaluating) &&
      generations_ != configurations_.Generations()) {
    snapshots_.Drop();
    StartFlushing();
    return true;
  }
  return false;
}

}  // namespace adamant::controller
