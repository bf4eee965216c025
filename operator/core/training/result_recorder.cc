#include "operator/core/training/result_recorder.h"

#include <chrono>
#include <string>
#include <utility>

#include "operator/core/diagnosis/chance.h"
#include "operator/core/state/sent_again.h"
#include "services/common/base/failpoint.h"

namespace adamant::controller {

void ResultRecorder::Begin() {
  if (state_.row.epoch != state_.epoch) {
    state_.row = {};
    state_.row.epoch = state_.epoch;
  }
  state_.row.counted = state_.row.left = state_.row.retrained = 0;
}

void ResultRecorder::Add(const PartClosed& part) {
  state_.row.counted += part.counted_examples;
  state_.row.left += part.left_examples;
  state_.row.retrained += part.retrained_examples;
}

void ResultRecorder::OnPartsClosed() {
  if (state_.row.seconds == 0) {
    state_.row.seconds = std::chrono::duration<double>(state_.epoch_active).count();
  }
}

void ResultRecorder::OnWorkersFlushed() {
  if (!state_.row.is_measured()) {
    meter_.Fill(state_.row);
  }
  TellSentAgain(settings_, state_, outbox_);
}

bool ResultRecorder::OnEvaluated(const Evaluated& message) {
  if (state_.step != Step::kEvaluating || message.epoch != state_.epoch ||
      message.snapshot != state_.row.snapshot) {
    return false;
  }
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
  TakeLosses(row);
  ADAMANT_FAILPOINT("epoch/store_row");
  Store(row);
  const std::uint64_t counted = state_.recovery.counted_examples + row.counted;
  state_.at_chance = IsAtChance(row, message.most_frequent) ||
                     HasChanceLoss(row, message.most_frequent, counted, settings_.chance_loss) ||
                     IsUselessByHeart(row, message.most_frequent, settings_.chance_loss);
  TellChance(message.most_frequent);
  return true;
}

// What the controller that left this epoch had seen of it stays known.
void ResultRecorder::StoreUnattended(const UnattendedEpoch& ended) {
  EpochResult row = ended.epoch == state_.row.epoch ? state_.row : EpochResult{};
  row.epoch = ended.epoch;
  row.snapshot = 0;
  row.counted = ended.counted;
  row.left = ended.left;
  row.retrained = ended.retrained;
  row.restarts = state_.restarts;
  row.attempt = state_.recovery.attempt;
  state_.recovery.counted_examples += row.counted;
  TakeLosses(row);
  ADAMANT_FAILPOINT("epoch/store_unattended");
  Store(row);
}

// Workers find out what is lost when they send it again, perhaps after the row was measured.
void ResultRecorder::TakeLosses(EpochResult& row) {
  row.updates_lost += std::exchange(state_.unrecorded_losses, 0);
  state_.updates_lost += row.updates_lost;
}

void ResultRecorder::Store(const EpochResult& row) {
  outbox_.Store(row);
  outbox_.Add(EpochDone{row});
}

void ResultRecorder::TellChance(std::uint64_t most_frequent) {
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

}  // namespace adamant::controller
