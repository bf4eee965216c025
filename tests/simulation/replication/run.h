#pragma once

#include <cstdint>
#include <string>

#include "services/common/base/clock.h"
#include "tests/simulation/engine/aimed_faults.h"
#include "tests/simulation/engine/outcome.h"
#include "tests/simulation/replication/world/mutation.h"

namespace adamant::replication_simulation {

/// What became of one simulated cluster.
struct Outcome : simulation::SeedOutcome {
  std::uint64_t acknowledged = 0;          ///< updates of single shards
  std::uint64_t rolled_back = 0;           ///< of these, lost with all replicas of a bucket
  std::uint64_t records = 0;               ///< puts of records that were answered as stored
  simulation::AimedFaults::Passes passes;  ///< in builds with failpoints
  simulation::AimedFaults::Hits hits;      ///< the same
};

/// Runs the cluster of this seed with the faults of this seed, in builds with failpoints also those
/// at steps, unless `aims` is false.
Outcome RunSeed(std::uint64_t seed, Mutation mutation = Mutation::kNone, bool aims = true);

/// What tests/model/replay is to judge.
struct Trace {
  std::string text;       ///< empty: something happened that is not in the model
  std::string violation;  ///< as in Outcome
};

/// Runs a small cluster.
Trace TraceSeed(std::uint64_t seed, Mutation mutation = Mutation::kNone);

}  // namespace adamant::replication_simulation
