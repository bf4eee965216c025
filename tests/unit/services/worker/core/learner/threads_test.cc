// Real training threads beside the exchange loop: nothing is lost, and nothing allocated on the
// way.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/unit/services/worker/core/base/counting_new.h"
#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

void RunThreads(const RigOptions& options, std::uint32_t steps) {
  Rig rig(options);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([&rig, i] {
      auto thread = TrainingThread::Create(rig.learner, rig.intake, i, rig.clock);
      ASSERT_TRUE(thread.ok());
      const CountAllocations count;
      (*thread)->Run();
    });
  }
  bool stopping = false;
  for (int turn = 0; !rig.synchroniser.Stopped(); ++turn) {
    rig.now += std::chrono::milliseconds(1);
    if (turn % 16 == 0) {
      rig.servers.WriteToDisk();
    }
    while (rig.next_batch < steps && rig.PutBatch()) {
    }
    rig.learner.notifier().Notify();
    ASSERT_TRUE(rig.Pump().ok());
    while (rig.Serve(0) || rig.Serve(1) || rig.Reply()) {
      ASSERT_TRUE(rig.Pump().ok());
    }
    if (!stopping && rig.learner.steps() == steps) {
      stopping = true;
      rig.synchroniser.Stop();
    }
    std::this_thread::yield();
  }
  threads.clear();
  EXPECT_EQ(rig.acknowledged.size(), steps);
}

TEST(TrainingThreadsTest, EveryBatchIsTrainedAndAcknowledged) {
  RunThreads({.threads = 3, .fetch_every = 2, .push_every = 3}, 300);
  RunThreads({.threads = 2,
              .fetch_every = 1,
              .push_every = 2,
              .kind = OptimiserKind::kAdagrad,
              .location = OptimiserLocation::kServer,
              .rate = 0.02,
              .protocol = UpdateProtocol::kActivations},
             200);
}

TEST(TrainingThreadsTest, ThreadsWaitForWhatIsRetained) {
  RunThreads({.threads = 3, .fetch_every = 2, .push_every = 1, .retain_pushes = 2}, 300);
}

TEST(TrainingThreadsTest, TheTrainingLoopAllocatesNothing) {
  const std::uint64_t before = CountAllocations::total();
  RunThreads({.threads = 2, .fetch_every = 3, .push_every = 2}, 400);
  RunThreads({.threads = 2, .fetch_every = 3, .push_every = 2, .retain_pushes = 4}, 400);
  RunThreads({}, 2 * DeadUnitSampler::kSampleEvery * DeadUnitSampler::kWindow);
  EXPECT_EQ(CountAllocations::total(), before);
  {
    const CountAllocations count;
    ::operator delete(::operator new(1));
  }
  EXPECT_EQ(CountAllocations::total(), before + 1) << "the count counts";
}

}  // namespace
}  // namespace adamant::worker
