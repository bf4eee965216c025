// Runs many seeds of the whole cluster. Environment:
//   ADAMANT_SIMULATION_SEEDS        how many (1000)
//   ADAMANT_SIMULATION_FIRST_SEED   from which on (1)

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "operator/core/training/checkpoint_taker.h"
#include "services/common/base/mutex.h"
#include "services/worker/core/sync/pushes/push_pause.h"
#include "tests/simulation/harness/seeds.h"
#include "tests/simulation/job/run.h"
#include "tests/simulation/job/steps.h"

namespace adamant::simulation {
namespace {

StepFaults::Hits hits;  // of all seeds

TEST(SimulationTest, EverySeedKeepsThePromises) {
  SeedTotals totals;
  std::uint64_t trained = 0;
  std::uint64_t lost = 0;
  Mutex mutex;
  const auto begin = std::chrono::steady_clock::now();
  RunOnAllProcessors(SeedsFromEnvironment(), [&](std::uint64_t seed) {
    const Outcome outcome = RunSeed(seed);
    const MutexLock lock(mutex);
    totals.Add(seed, outcome);
    trained += outcome.trained;
    lost += outcome.lost;
    for (const auto& [pair, times] : outcome.hits) {
      hits[pair] += times;
    }
  });
  totals.set_wall_time(std::chrono::steady_clock::now() - begin);
  totals.Print("simulation",
               std::to_string(trained) + " batches trained, " + std::to_string(lost) +
                   " shard updates lost with servers");
}

#ifdef ADAMANT_FAILPOINTS
// After the seeds above.
TEST(SimulationTest, FaultsMeetEveryStep) {
  if (SeedsFromEnvironment().count < 1000) {
    GTEST_SKIP() << "fewer than 1,000 seeds were run";
  }
  ExpectStepsMet("simulation", Steps(), hits);
}
#endif

TEST(SimulationTest, TheSameSeedGivesTheSameHistory) {
  ExpectTheSameHistories({1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                         [](std::uint64_t seed) { return RunSeed(seed); });
}

// By clocks of which one is 10 % fast and the other 10 % slow, whoever pauses outlasts an attempt.
TEST(SimulationTest, WorkersPauseTheirPushesLongerThanAnAttemptAtACheckpointTakes) {
  const std::chrono::duration<double> attempt =
      controller::CheckpointTaker::kPauseTime + controller::CheckpointTaker::kStoreTime;
  EXPECT_GT(worker::PushPause::kTimeout / 1.1, attempt / 0.9);
}

}  // namespace
}  // namespace adamant::simulation
