// Prints tests/simulation/job/steps.inc: the steps of the cores that 2,000 seeds pass, how many of
// the seeds, and how often each.

#include <cstdint>

#include "tests/simulation/engine/step_counts.h"
#include "tests/simulation/job/run.h"

int main() {
  constexpr std::uint64_t kSeeds = 2000;
  adamant::simulation::StepCounts counts;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    counts.Add(
        adamant::simulation::RunSeed(seed, adamant::simulation::Mutation::kNone, false).passes);
  }
  counts.Print();
}
