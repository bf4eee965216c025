#pragma once

#include <cstdint>
#include <string>

#include "services/common/base/clock.h"
#include "tests/simulation/engine/outcome.h"
#include "tests/simulation/job/setup/mutation.h"
#include "tests/simulation/job/step_faults.h"

namespace adamant::simulation {

/// What became of one simulated job.
struct Outcome : SeedOutcome {
  std::uint64_t trained = 0;  ///< batches
  std::uint64_t lost = 0;     ///< updates of single shards that servers lost
  StepFaults::Passes passes;  ///< in builds with failpoints
  StepFaults::Hits hits;      ///< the same
};

/// Runs the job of this seed with the faults of this seed, in builds with failpoints also those at
/// steps, unless `aims` is false.
Outcome RunSeed(std::uint64_t seed, Mutation mutation = Mutation::kNone, bool aims = true);

}  // namespace adamant::simulation
