// Runs many seeds of replication. Environment:
//   ADAMANT_SIMULATION_SEEDS        how many (1000)
//   ADAMANT_SIMULATION_FIRST_SEED   from which on (1)

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "services/common/base/mutex.h"
#include "tests/simulation/harness/seeds.h"
#include "tests/simulation/replication/run.h"
#include "tests/simulation/replication/steps.h"

namespace adamant::replication_simulation {
namespace {

simulation::AimedFaults::Hits hits;  // of all seeds

TEST(ReplicationSimulationTest, EverySeedKeepsThePromises) {
  simulation::SeedTotals totals;
  std::uint64_t acknowledged = 0;
  std::uint64_t rolled_back = 0;
  std::uint64_t records = 0;
  Mutex mutex;
  const auto begin = std::chrono::steady_clock::now();
  simulation::RunOnAllProcessors(simulation::SeedsFromEnvironment(), [&](std::uint64_t seed) {
    const Outcome outcome = RunSeed(seed);
    const MutexLock lock(mutex);
    totals.Add(seed, outcome);
    acknowledged += outcome.acknowledged;
    rolled_back += outcome.rolled_back;
    records += outcome.records;
    for (const auto& [pair, times] : outcome.hits) {
      hits[pair] += times;
    }
  });
  totals.set_wall_time(std::chrono::steady_clock::now() - begin);
  totals.Print("replication simulation",
               std::to_string(acknowledged) + " updates acknowledged, " +
                   std::to_string(rolled_back) + " of them lost with all copies, " +
                   std::to_string(records) + " records stored");
}

#ifdef ADAMANT_FAILPOINTS
// After the seeds above.
TEST(ReplicationSimulationTest, FaultsMeetEveryStep) {
  if (simulation::SeedsFromEnvironment().count < 1000) {
    GTEST_SKIP() << "fewer than 1,000 seeds were run";
  }
  simulation::ExpectStepsMet("replication simulation", Steps(), hits);
}
#endif

TEST(ReplicationSimulationTest, TheSameSeedGivesTheSameHistory) {
  simulation::ExpectTheSameHistories({1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                                     [](std::uint64_t seed) { return RunSeed(seed); });
}

}  // namespace
}  // namespace adamant::replication_simulation
