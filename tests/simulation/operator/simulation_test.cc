// Runs many seeds of the operator's simulation. Environment:
//   ADAMANT_SIMULATION_SEEDS        how many (1000)
//   ADAMANT_SIMULATION_FIRST_SEED   from which on (1)

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "services/common/base/log.h"
#include "tests/simulation/harness/seeds.h"
#include "tests/simulation/operator/run.h"

namespace adamant::orchestration {
namespace {

// One after the other: the models of members have expectations of their own.
TEST(OperatorSimulationTest, EverySeedKeepsThePromises) {
  const simulation::SeedRange seeds = simulation::SeedsFromEnvironment();
  simulation::SeedTotals totals;
  std::uint64_t requests = 0;
  std::uint64_t restarts = 0;
  std::map<std::string, int> ends;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const Outcome outcome = RunSeed(seed);
    totals.Add(seed, outcome);
    requests += outcome.requests;
    restarts += outcome.restarts;
    ++ends[outcome.phase];
    ASSERT_FALSE(HasFatalFailure());
  }
  totals.set_wall_time(std::chrono::steady_clock::now() - begin);
  std::string details =
      std::to_string(requests) + " requests, " + std::to_string(restarts) + " restarts counted";
  for (const auto& [phase, count] : ends) {
    details += ", " + std::to_string(count) + " " + phase;
  }
  totals.Print("operator simulation", details);
}

// In seed 3001183 a job waits, by chance of its own, for room.
TEST(OperatorSimulationTest, TheSameSeedGivesTheSameHistory) {
  simulation::ExpectTheSameHistories({7, 8, 9, 3'001'183},
                                     [](std::uint64_t seed) { return RunSeed(seed); });
}

}  // namespace
}  // namespace adamant::orchestration

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  adamant::InitLog("operator-simulation", adamant::LogLevel::kError);
  return RUN_ALL_TESTS();
}
