#pragma once

#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// A token bucket: `burst` at once, then `rate` a second.
/// Threads: any.
class RateLimiter {
 public:
  /// `rate` and `burst` > 0. `clock` must outlive this.
  RateLimiter(double rate, double burst, const Clock& clock);

  /// Takes a token, of the future if there is none now: how long to wait before using it.
  Clock::Duration Reserve();

  /// Takes a token if there is one now.
  bool TryTake();

 private:
  void Refill() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const double rate_;
  const double burst_;
  const Clock& clock_;

  Mutex mutex_;
  double tokens_ ABSL_GUARDED_BY(mutex_);  // below 0: reserved
  Clock::TimePoint refilled_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::kube
