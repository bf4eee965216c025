#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "services/common/base/ids.h"
#include "services/worker/core/learner/learner.h"

namespace adamant::worker {

/// The epoch whose end the controller waits for, and which threads have handed over what they had
/// of it. Threads: one at a time, beside the training threads.
class EpochFlush {
 public:
  explicit EpochFlush(Learner& learner) : learner_(learner) {}  // must outlive this

  /// Asks the threads for everything of epochs up to this one; the caller rings Learner::notifier.
  void Begin(DataEpoch epoch) {
    epoch_ = std::max(epoch_.value_or(0), epoch);
    answers_ = 0;
    learner_.commands().RequestFlush();
  }

  /// A thread has handed it over, in answer to this Commands::flush_wanted.
  void OnFlushed(std::uint64_t generation) {
    answers_ += generation == learner_.commands().flush_wanted() ? 1 : 0;
  }

  /// Returns whether a flush is under way and all threads have answered.
  [[nodiscard]] bool Answered() const {
    return epoch_.has_value() && answers_ >= learner_.threads();
  }

  /// Ends it; returns its epoch.
  std::optional<DataEpoch> Take() { return std::exchange(epoch_, std::nullopt); }

 private:
  Learner& learner_;
  std::optional<DataEpoch> epoch_;
  std::size_t answers_ = 0;
};

}  // namespace adamant::worker
