#pragma once

#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace adamant {

/// A clock that stands still until it is told to go on.
/// Threads: any.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] TimePoint Now() const override {
    const MutexLock lock(mutex_);
    return now_;
  }

  [[nodiscard]] std::chrono::system_clock::time_point WallNow() const override {
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(Now().time_since_epoch()));
  }

  void Advance(Duration by) {
    const MutexLock lock(mutex_);
    now_ += by;
  }

 private:
  mutable Mutex mutex_;
  TimePoint now_ ABSL_GUARDED_BY(mutex_){std::chrono::hours(1)};
};

}  // namespace adamant
