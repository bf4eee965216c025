#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/common/base/clock.h"
#include "tests/simulation/engine/outcome.h"
#include "tests/simulation/operator/world/mutation.h"

namespace adamant::orchestration {

/// What became of one simulated job.
struct Outcome : simulation::SeedOutcome {
  std::string phase;  ///< in which the job ended
  std::uint64_t requests = 0;
  std::uint64_t restarts = 0;
  std::vector<std::string> writes;  ///< of the last leader, until the job ended: "PUT configmaps"
};

/// Runs the job of this seed, with the faults of this seed, until it has ended and is deleted.
Outcome RunSeed(std::uint64_t seed, Mutation mutation = Mutation::kNone);

/// A leader dies at its write with this number, counted from 1: right before it, or right after.
struct LeaderCrash {
  std::size_t write = 1;
  bool after = false;
};

/// The same job without faults but for these: the first leader dies, the operator that takes over
/// dies, and so on.
Outcome RunWithCrashes(std::uint64_t seed, const std::vector<LeaderCrash>& crashes);

}  // namespace adamant::orchestration
