#pragma once

#include <vector>

#include "operator/kube_client/base/sleeper.h"
#include "services/common/base/mutex.h"
#include "tests/fakes/fake_clock.h"

namespace adamant::kube {

/// Waits by moving a FakeClock on, and remembers how long.
/// Threads: any.
class FakeSleeper final : public Sleeper {
 public:
  explicit FakeSleeper(FakeClock& clock) : clock_(clock) {}

  bool Sleep(Clock::Duration time, const Cancellation& cancellation) override {
    if (cancellation.cancelled()) {
      return false;
    }
    clock_.Advance(time);
    const MutexLock lock(mutex_);
    sleeps_.push_back(time);
    return true;
  }

  [[nodiscard]] std::vector<Clock::Duration> sleeps() const {
    const MutexLock lock(mutex_);
    return sleeps_;
  }

 private:
  FakeClock& clock_;

  mutable Mutex mutex_;
  std::vector<Clock::Duration> sleeps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::kube
