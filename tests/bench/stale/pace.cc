#include "tests/bench/stale/pace.h"

#include <algorithm>

#include "tests/bench/stale/virtual_clock.h"

namespace adamant::bench {

Pace::Pace(const PaceOptions& options, std::uint64_t seed)
    : options_(options),
      every_(VirtualClock::DurationOf(options.pause.every)),
      lasts_(VirtualClock::DurationOf(options.pause.lasts)),
      rng_(seed) {}

Clock::Duration Pace::NextStep() {
  return VirtualClock::DurationOf(options_.step * Vary(options_.jitter));
}

Clock::TimePoint Pace::Done(Clock::TimePoint begin, Clock::Duration work) const {
  Clock::TimePoint time = Awake(begin);
  while (lasts_ > Clock::Duration::zero() && work > UntilPause(time)) {
    work -= UntilPause(time);
    time += UntilPause(time) + lasts_;
  }
  return time + work;
}

Clock::TimePoint Pace::Awake(Clock::TimePoint time) const {
  if (lasts_ == Clock::Duration::zero() || UntilPause(time) > Clock::Duration::zero()) {
    return time;
  }
  return time + (every_ - time.time_since_epoch() % every_);
}

Clock::Duration Pace::UntilPause(Clock::TimePoint time) const {
  return std::max(every_ - lasts_ - time.time_since_epoch() % every_, Clock::Duration::zero());
}

}  // namespace adamant::bench
