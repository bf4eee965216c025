#include "operator/kube_client/base/rate_limiter.h"

#include <algorithm>
#include <chrono>

namespace adamant::kube {

RateLimiter::RateLimiter(double rate, double burst, const Clock& clock)
    : rate_(rate), burst_(burst), clock_(clock), tokens_(burst), refilled_(clock.Now()) {}

Clock::Duration RateLimiter::Reserve() {
  const MutexLock lock(mutex_);
  Refill();
  tokens_ -= 1;
  if (tokens_ >= 0) {
    return Clock::Duration::zero();
  }
  const std::chrono::duration<double> wait(-tokens_ / rate_);
  return std::chrono::ceil<Clock::Duration>(wait);
}

bool RateLimiter::TryTake() {
  const MutexLock lock(mutex_);
  Refill();
  if (tokens_ < 1) {
    return false;
  }
  tokens_ -= 1;
  return true;
}

void RateLimiter::Refill() {
  const Clock::TimePoint now = clock_.Now();
  const std::chrono::duration<double> passed = now - refilled_;
  tokens_ = std::min(burst_, tokens_ + passed.count() * rate_);
  refilled_ = now;
}

}  // namespace adamant::kube
