#pragma once

#include <cstdint>
#include <string>

#include "services/common/base/clock.h"
#include "tests/simulation/job/setup/mutation.h"
#include "tests/simulation/job/step_faults.h"

namespace adamant::simulation {

/// What became of one simulated job.
struct Outcome {
  std::string violation;   ///< the first promise that was broken; empty: none
  std::string story;       ///< with a violation: the job and the last events
  std::uint64_t hash = 0;  ///< of all that happened
  std::uint64_t events = 0;
  std::uint64_t faults = 0;
  std::uint64_t trained = 0;  ///< batches
  std::uint64_t lost = 0;     ///< updates of single shards that servers lost
  Clock::Duration virtual_time{};
  StepFaults::Passes passes;  ///< in builds with failpoints
  StepFaults::Hits hits;      ///< the same
};

/// Runs the job of this seed with the faults of this seed, in builds with failpoints also those at
/// steps, unless `aims` is false.
Outcome RunSeed(std::uint64_t seed, Mutation mutation = Mutation::kNone, bool aims = true);

}  // namespace adamant::simulation
