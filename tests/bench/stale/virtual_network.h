#pragma once

#include <algorithm>
#include <cstdint>

#include "services/common/base/clock.h"
#include "tests/bench/stale/virtual_clock.h"

namespace adamant::bench {

/// A machine and its way to the others, full duplex: until when each is taken.
struct VirtualLink {
  Clock::TimePoint sends_until{};
  Clock::TimePoint receives_until{};
  Clock::TimePoint applies_until{};  ///< of a server
};

struct VirtualNetworkOptions {
  double latency = 0.5;  ///< steps
  double bandwidth = 0;  ///< of each link and direction, in bytes a step; 0: endless
  double apply = 0;      ///< steps that a server takes for a push
};

/// Messages between machines: each takes its turn on the sender's link and on the receiver's, both
/// of which it occupies while its bytes go through, and then the latency. Threads: one.
class VirtualNetwork {
 public:
  explicit VirtualNetwork(const VirtualNetworkOptions& options)
      : latency_(options.latency),
        bandwidth_(options.bandwidth),
        apply_(VirtualClock::DurationOf(options.apply)) {}

  /// When a message of so many bytes that is sent now will have come. `factor`: on its latency.
  Clock::TimePoint Send(Clock::TimePoint now,
                        std::uint64_t bytes,
                        double factor,
                        VirtualLink& from,
                        VirtualLink& to) const {
    if (bandwidth_ > 0) {
      now = std::max({now, from.sends_until, to.receives_until});
      now += VirtualClock::DurationOf(static_cast<double>(bytes) / bandwidth_);
      from.sends_until = to.receives_until = now;
    }
    return now + VirtualClock::DurationOf(latency_ * factor);
  }

  /// When a server has applied a push that has come now: one after the other.
  Clock::TimePoint Apply(Clock::TimePoint now, VirtualLink& server) const {
    server.applies_until = std::max(now, server.applies_until) + apply_;
    return server.applies_until;
  }

 private:
  const double latency_;
  const double bandwidth_;
  const Clock::Duration apply_;
};

}  // namespace adamant::bench
