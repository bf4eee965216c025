// Runs many seeds of the cluster simulation. Environment:
//   ADAMANT_SIMULATION_SEEDS        how many (1000)
//   ADAMANT_SIMULATION_FIRST_SEED   from which on (1)

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

#include "operator/core/training/checkpoint_taker.h"
#include "services/common/base/mutex.h"
#include "services/worker/core/push_hold.h"
#include "tests/simulation/job/run.h"
#include "tests/simulation/job/steps.h"

namespace adamant::simulation {
namespace {

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Sums over the seeds that were run.
struct Totals {
  std::uint64_t seeds = 0;
  std::uint64_t violations = 0;
  std::uint64_t faults = 0;
  std::uint64_t fewest_faults = 0;
  std::uint64_t events = 0;
  std::uint64_t trained = 0;
  std::uint64_t lost = 0;
  StepFaults::Hits hits;
  Clock::Duration virtual_time{};
  std::chrono::duration<double> wall_time{};
};

Totals totals;

void Count(std::uint64_t seed, const Outcome& outcome) {
  ++totals.seeds;
  totals.faults += outcome.faults;
  totals.fewest_faults =
      totals.seeds == 1 ? outcome.faults : std::min(totals.fewest_faults, outcome.faults);
  totals.events += outcome.events;
  totals.trained += outcome.trained;
  totals.lost += outcome.lost;
  totals.virtual_time += outcome.virtual_time;
  for (const auto& [pair, times] : outcome.hits) {
    totals.hits[pair] += times;
  }
  if (!outcome.violation.empty()) {
    ++totals.violations;
    ADD_FAILURE() << "seed " << seed << ": " << outcome.violation << "\n"
                  << outcome.story << "replay: make simulate SEEDS=1 FIRST_SEED=" << seed;
  }
}

TEST(SimulationTest, EverySeedKeepsThePromises) {
  const std::uint64_t seeds = FromEnvironment("ADAMANT_SIMULATION_SEEDS", 1000);
  const std::uint64_t first = FromEnvironment("ADAMANT_SIMULATION_FIRST_SEED", 1);
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next = first;
  Mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      threads.emplace_back([&] {
        for (std::uint64_t seed = next++; seed < first + seeds; seed = next++) {
          const Outcome outcome = RunSeed(seed);
          const MutexLock lock(mutex);
          Count(seed, outcome);
        }
      });
    }
  }
  totals.wall_time = std::chrono::steady_clock::now() - begin;
}

#ifdef ADAMANT_FAILPOINTS
// After the seeds above.
TEST(SimulationTest, FaultsMeetEveryStep) {
  if (totals.seeds < 1000) {
    GTEST_SKIP() << "fewer than 1,000 seeds were run";
  }
  std::string missing;
  for (const Step& step : Steps()) {
    for (int i = 0; i < kStepFaults; ++i) {
      const auto fault = static_cast<StepFault>(i);
      if (!totals.hits.contains({step.name, fault})) {
        missing += "\n  " + std::string(step.name) + ", " + std::string(NameOf(fault));
      }
    }
  }
  const auto all = static_cast<double>(Steps().size() * kStepFaults);
  EXPECT_GE(static_cast<double>(totals.hits.size()) / all, 0.95) << "not met:" << missing;
  std::printf("simulation: %zu of %.0f pairs of step and fault met; not met:%s\n",
              totals.hits.size(),
              all,
              missing.empty() ? " none" : missing.c_str());
}
#endif

// Whatever ran before it in the process.
TEST(SimulationTest, TheSameSeedGivesTheSameHistory) {
  std::map<std::uint64_t, Outcome> first;
  const std::vector<std::uint64_t> seeds = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
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

// By clocks of which one is 10 % fast and the other 10 % slow, whoever holds outlasts an attempt.
TEST(SimulationTest, WorkersHoldTheirPushesLongerThanAnAttemptAtACheckpointTakes) {
  const std::chrono::duration<double> attempt =
      controller::CheckpointTaker::kHoldTime + controller::CheckpointTaker::kStoreTime;
  EXPECT_GT(worker::PushHold::kPatience / 1.1, attempt / 0.9);
}

void PrintTotals() {
  if (totals.seeds == 0) {
    return;
  }
  const std::chrono::duration<double, std::ratio<3600>> hours = totals.virtual_time;
  std::printf(
      "simulation: %llu seeds, %llu violations; %llu faults (at least %llu a seed), %llu events, "
      "%llu batches trained, %llu shard updates lost with servers; %.1f virtual hours in %.1f s: "
      "%.0f virtual hours per wall hour\n",
      static_cast<unsigned long long>(totals.seeds),
      static_cast<unsigned long long>(totals.violations),
      static_cast<unsigned long long>(totals.faults),
      static_cast<unsigned long long>(totals.fewest_faults),
      static_cast<unsigned long long>(totals.events),
      static_cast<unsigned long long>(totals.trained),
      static_cast<unsigned long long>(totals.lost),
      hours.count(),
      totals.wall_time.count(),
      hours.count() * 3600 / totals.wall_time.count());
}

}  // namespace
}  // namespace adamant::simulation

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  adamant::simulation::PrintTotals();
  return result;
}
