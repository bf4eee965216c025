#include "operator/core/job/active_time.h"

#include <chrono>

namespace adamant::controller {

void ActiveTime::Advance(TimePoint now, bool trained) {
  const auto passed = std::chrono::floor<std::chrono::milliseconds>(now - counted_until_);
  if (passed.count() <= 0) {
    return;
  }
  counted_until_ += passed;
  if (!IsFinal(state_.phase)) {
    state_.active += passed;
    if (trained) {
      state_.epoch_active += passed;
    }
    if (state_.phase == Phase::kEvaluating || meter_.ExamplesPerSecond(now) > 0) {
      state_.productive += passed;
    }
  }
}

}  // namespace adamant::controller
