// WorkDealer: epochs, at the controller's command and without it (docs/design/0003-operator.md,
// "Without a controller"): then the record of part 0 says which epoch it is and whether it has
// ended; its owner decides, the others follow.

#include <algorithm>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/data_server/core/work_dealer.h"

namespace adamant::data_server {

void WorkDealer::On(const OpenEpoch& command, TimePoint now) {
  Confirm(command.epoch);
  if (command.epoch == epoch_ && !open_) {
    out_.emplace_back(EpochEnded{.epoch = epoch_});  // its controller missed that
  } else if (command.epoch >= epoch_) {
    StartEpoch(command.epoch, now);
  }
}

void WorkDealer::On(const CloseEpoch& command, TimePoint) {
  Confirm(command.epoch);
  if (command.epoch >= epoch_) {
    EndEpoch(command.epoch, true);
  }
}

void WorkDealer::StartEpoch(std::uint64_t epoch, TimePoint now) {
  if (ForgetTraining(epoch - 1)) {
    TellClosed(epoch - 1);
  }
  ForgetEvaluation();
  if (epoch > epoch_) {
    for (auto& [slot, worker] : workers_.workers()) {
      worker.told_drained = false;
    }
  }
  epoch_ = epoch;
  open_ = true;
  reported_ended_ = false;
  poll_at_ = options_.parts > 1 ? std::optional(now) : std::nullopt;
  for (auto& [index, part] : parts_) {
    part.Open(epoch);
  }
  PollForeign(now);
}

void WorkDealer::EndEpoch(std::uint64_t epoch, bool report) {
  epoch_ = epoch;
  open_ = false;
  if (!away_) {
    poll_at_.reset();
  }
  for (auto& [index, part] : parts_) {
    part.Close(epoch, report);
  }
  ForgetTraining(epoch);
  TellClosed(epoch);
}

void WorkDealer::On(const ControllerAway&, TimePoint now) {
  if (!std::exchange(away_, true)) {
    controller_heard_ = now;
    poll_at_ = options_.parts > 1 ? std::optional(now) : std::nullopt;
  }
}

void WorkDealer::On(const ControllerBack&, TimePoint) {
  away_ = false;
  if (!open_) {
    poll_at_.reset();
  }
}

void WorkDealer::Confirm(std::uint64_t epoch) {
  if (const auto first = parts_.find(0); first != parts_.end()) {
    first->second.Confirm(epoch);
  }
}

void WorkDealer::GoOnAlone(TimePoint now) {
  alone_ = away_ && now - controller_heard_ >= options_.controller_patience;
  if (!alone_) {
    return;
  }
  if (const auto first = parts_.find(0); first != parts_.end()) {
    Lead(first->second, now);
  } else {
    Follow(foreign_[0], now);
  }
}

void WorkDealer::Lead(Part& first, TimePoint now) {
  if (!first.stored()) {
    return;
  }
  if (first.stored_epoch() > epoch_) {
    return StartAlone(first.stored_epoch(), now);
  }
  if (!IsFollowed()) {
    return;
  }
  if (EpochIsComplete()) {
    ADAMANT_FAILPOINT("epoch/end_alone");
    EndEpoch(epoch_, false);
  } else if (const std::optional<UnattendedEpoch> ended = ClosedEpoch()) {
    ADAMANT_FAILPOINT("epoch/succeed_alone");
    first.Succeed(*ended);
  }
}

void WorkDealer::Follow(const Ledger& first, TimePoint now) {
  if (first.epoch > epoch_) {
    StartAlone(first.epoch, now);
  }
  if (first.epoch == epoch_ && first.closed && open_) {
    EndEpoch(epoch_, false);
  }
}

void WorkDealer::StartAlone(std::uint64_t epoch, TimePoint now) {
  ADAMANT_FAILPOINT("epoch/open_alone");
  StartEpoch(epoch, now);
  out_.emplace_back(OpenedAlone{.epoch = epoch});
}

// Whether another epoch may follow this one without the controller's word.
bool WorkDealer::IsFollowed() const {
  if (epoch_ == 0 || epoch_ >= options_.epochs) {
    return false;
  }
  if (!evaluation_ || evaluation_->command().epoch != epoch_) {
    return true;
  }
  if (!evaluation_->done()) {
    return false;
  }
  const Evaluated sum = evaluation_->Sum();
  return !options_.target_accuracy || sum.examples == 0 ||
         static_cast<double>(sum.correct) / static_cast<double>(sum.examples) <
             *options_.target_accuracy;
}

// The sums of this epoch, if all parts are closed, which is stored.
std::optional<UnattendedEpoch> WorkDealer::ClosedEpoch() const {
  UnattendedEpoch sums{.epoch = epoch_};
  for (std::uint32_t index = 0; index < options_.parts; ++index) {
    const auto part = parts_.find(index);
    const bool ours = part != parts_.end();
    const Ledger& ledger = ours ? part->second.ledger() : foreign_[index];
    if ((ours && !part->second.stored()) || ledger.epoch != epoch_ || !ledger.closed) {
      return std::nullopt;
    }
    sums.counted += ledger.counted_examples;
    sums.retrained += ledger.retrained_examples;
  }
  sums.left =
      options_.train_examples - std::min<std::uint64_t>(options_.train_examples, sums.counted);
  return sums;
}

}  // namespace adamant::data_server
