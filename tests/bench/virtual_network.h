#pragma once

#include <algorithm>
#include <cstdint>

#include "services/common/base/clock.h"
#include "tests/bench/virtual_clock.h"

namespace adamant::bench {

/// A machine's way to the others, full duplex: until when it is taken.
struct VirtualLink {
  Clock::TimePoint sends_until{};
  Clock::TimePoint receives_until{};
};

/// Messages between machines: each takes its turn on the sender's link and on the receiver's, both
/// of which it occupies while its bytes go through, and then the latency. Threads: one.
class VirtualNetwork {
 public:
  /// `latency` in steps; `bandwidth` of each link and direction in bytes a step, 0: endless.
  VirtualNetwork(double latency, double bandwidth)
      : latency_(VirtualClock::DurationOf(latency)), bandwidth_(bandwidth) {}

  /// When a message of so many bytes that is sent now will have come.
  Clock::TimePoint Send(Clock::TimePoint now,
                        std::uint64_t bytes,
                        VirtualLink& from,
                        VirtualLink& to) const {
    if (bandwidth_ > 0) {
      now = std::max({now, from.sends_until, to.receives_until});
      now += VirtualClock::DurationOf(static_cast<double>(bytes) / bandwidth_);
      from.sends_until = to.receives_until = now;
    }
    return now + latency_;
  }

 private:
  const Clock::Duration latency_;
  const double bandwidth_;
};

}  // namespace adamant::bench
