#pragma once

#include <chrono>
#include <string_view>

#include "services/common/base/clock.h"
#include "services/common/base/log.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// Tells in the log who was refused, once a second at most: anybody may ask. Threads: any.
class RefusalLog {
 public:
  /// `clock` must outlive this.
  explicit RefusalLog(const Clock& clock) : clock_(clock) {}

  void Tell(std::string_view who, std::string_view why) {
    const Clock::TimePoint now = clock_.Now();
    {
      const MutexLock lock(mutex_);
      if (now < next_) {
        return;
      }
      next_ = now + std::chrono::seconds(1);
    }
    LogWarning("refused", {{"who", who}, {"why", why}});
  }

 private:
  const Clock& clock_;
  Mutex mutex_;
  Clock::TimePoint next_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace adamant::kube
