// Runs many seeds of the operator's simulation. Environment:
//   ADAMANT_SIMULATION_SEEDS        how many (1000)
//   ADAMANT_SIMULATION_FIRST_SEED   from which on (1)

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <ranges>
#include <string>
#include <vector>

#include "services/common/base/log.h"
#include "tests/simulation/operator/run.h"

namespace adamant::orchestration {
namespace {

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(OperatorSimulationTest, EverySeedKeepsThePromises) {
  const std::uint64_t seeds = FromEnvironment("ADAMANT_SIMULATION_SEEDS", 1000);
  const std::uint64_t first = FromEnvironment("ADAMANT_SIMULATION_FIRST_SEED", 1);
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t faults = 0;
  std::uint64_t requests = 0;
  std::uint64_t restarts = 0;
  Clock::Duration virtual_time{};
  std::map<std::string, int> ends;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Outcome outcome = RunSeed(seed);
    faults += outcome.faults;
    requests += outcome.requests;
    restarts += outcome.restarts;
    virtual_time += outcome.virtual_time;
    ++ends[outcome.phase];
    EXPECT_EQ(outcome.violation, "")
        << "seed " << seed << "\n"
        << outcome.story
        << "replay: ADAMANT_SIMULATION_SEEDS=1 ADAMANT_SIMULATION_FIRST_SEED=" << seed
        << " build/release/tests/operator_simulation_test";
    ASSERT_FALSE(HasFatalFailure());
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  std::printf(
      "operator simulation: %llu seeds in %.1f s; %llu faults, %llu requests, %llu restarts "
      "counted, %.1f virtual hours\n",
      static_cast<unsigned long long>(seeds),
      wall.count(),
      static_cast<unsigned long long>(faults),
      static_cast<unsigned long long>(requests),
      static_cast<unsigned long long>(restarts),
      std::chrono::duration<double>(virtual_time).count() / 3600);
  for (const auto& [phase, count] : ends) {
    std::printf("  %s: %d\n", phase.c_str(), count);
  }
}

// Whatever ran before it in the process. In seed 3001183 a job waits, by chance of its own, for
// room.
TEST(OperatorSimulationTest, TheSameSeedGivesTheSameHistory) {
  std::map<std::uint64_t, Outcome> first;
  const std::vector<std::uint64_t> seeds = {7, 8, 9, 3'001'183};
  for (const std::uint64_t seed : seeds) {
    first[seed] = RunSeed(seed);
  }
  for (const std::uint64_t seed : seeds | std::views::reverse) {
    const Outcome again = RunSeed(seed);
    EXPECT_EQ(again.hash, first[seed].hash) << "seed " << seed;
    EXPECT_EQ(again.events, first[seed].events) << "seed " << seed;
  }
  EXPECT_NE(first[7].hash, first[8].hash);
}

}  // namespace
}  // namespace adamant::orchestration

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  adamant::InitLog("operator-simulation", adamant::LogLevel::kError);
  return RUN_ALL_TESTS();
}
