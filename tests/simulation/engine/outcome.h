#pragma once

#include <cstdint>
#include <string>

#include "services/common/base/clock.h"

namespace adamant::simulation {

/// What became of one seed. Each simulation adds what is its own.
struct SeedOutcome {
  std::string violation;   ///< the first promise that was broken; empty: none
  std::string story;       ///< with a violation: what was simulated, and the last events
  std::uint64_t hash = 0;  ///< of all that happened
  std::uint64_t events = 0;
  std::uint64_t faults = 0;
  Clock::Duration virtual_time{};
};

}  // namespace adamant::simulation
