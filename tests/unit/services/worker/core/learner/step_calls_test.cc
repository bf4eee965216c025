// What a step of training asks of the kernel and of others: no lock, and no system call as long as
// the exchange loop is awake.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <semaphore>
#include <shared_mutex>

#include "tests/fakes/nets.h"
#include "tests/unit/services/worker/core/learner/counted_locks.h"
#include "tests/unit/services/worker/core/learner/traced_calls.h"
#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

constexpr std::uint32_t kSteps = 200;

model::Graph EveryLayerKindGraph() {
  auto graph = model::BuildGraph(fakes::EveryLayerKind());
  ADAMANT_CHECK(graph.ok(), "the net is right");
  return *graph;
}

constexpr RigOptions kTiny = {.fetch_every = 2, .push_every = 3};
constexpr RigOptions kRetained = {.fetch_every = 1, .push_every = 1, .retain_pushes = 4};
constexpr RigOptions kEveryLayer = {.fetch_every = 2,
                                    .push_every = 3,
                                    .graph = EveryLayerKindGraph,
                                    .backend = graph::BackendKind::kOneDnn};

// Trains kSteps batches with the one thread of `rig`; what that thread does is counted, and what
// the exchange does is not.
template <class Counted>
void Train(Rig& rig) {
  while (rig.learner.steps() < kSteps) {
    while (rig.next_batch < kSteps && rig.PutBatch()) {
    }
    {
      const Counted count;
      while (rig.threads.front()->Advance() == TrainingThread::Progress::kWorked) {
      }
    }
    ASSERT_TRUE(rig.Pump().ok());
    rig.servers.WriteToDisk();
    while (rig.Serve(0) || rig.Serve(1) || rig.Reply()) {
      ASSERT_TRUE(rig.Pump().ok());
    }
  }
}

template <class Counted>
void Train(const RigOptions& options) {
  std::counting_semaphore<> wakes{0};
  Rig rig(options, [&wakes] { wakes.release(); });
  rig.Begin();
  Train<Counted>(rig);
}

class StepCallsTest : public testing::TestWithParam<RigOptions> {};

TEST_P(StepCallsTest, AStepTakesNoLock) {
  const std::uint64_t before = CountLocks::total();
  Train<CountLocks>(GetParam());
  EXPECT_EQ(CountLocks::total(), before);
}

TEST_P(StepCallsTest, AStepMakesNoSystemCall) {
  const SystemCalls calls = TraceSystemCalls([] { Train<CountSystemCalls>(GetParam()); });
  EXPECT_EQ(calls, SystemCalls{});
}

INSTANTIATE_TEST_SUITE_P(Rigs, StepCallsTest, testing::Values(kTiny, kRetained, kEveryLayer));

TEST(CountLocksTest, CountsMutexes) {
  const std::uint64_t before = CountLocks::total();
  std::mutex mutex;
  std::shared_mutex shared;
  {
    const CountLocks count;
    const std::scoped_lock lock(mutex);
    const std::shared_lock reading(shared);
  }
  EXPECT_EQ(CountLocks::total(), before + 2);
}

TEST(TraceSystemCallsTest, CountsWhatIsCalledInBetween) {
  const SystemCalls calls = TraceSystemCalls([] {
    getppid();
    {
      const CountSystemCalls count;
      getppid();
      syscall(SYS_gettid);
      getppid();
    }
    getppid();
  });
  EXPECT_EQ(calls, (SystemCalls{{SYS_getppid, 2}, {SYS_gettid, 1}}));
}

}  // namespace
}  // namespace adamant::worker
