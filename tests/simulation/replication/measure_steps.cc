// Prints tests/simulation/replication/steps.inc: the steps of the cores that 1,000 seeds pass, how
// many of the seeds, and how often each.

#include <cstdint>

#include "tests/simulation/engine/step_counts.h"
#include "tests/simulation/replication/run.h"

int main() {
  using adamant::replication_simulation::Mutation;
  constexpr std::uint64_t kSeeds = 1000;
  adamant::simulation::StepCounts counts;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    counts.Add(adamant::replication_simulation::RunSeed(seed, Mutation::kNone, false).passes);
  }
  counts.Print();
}
