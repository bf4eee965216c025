#include "operator/kube_client/base/work_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/fakes/fake_clock.h"

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WorkQueueTest : public ::testing::Test {
 protected:
  // When the next key becomes ready, from now.
  Clock::Duration UntilDue() { return *queue_.NextDue() - clock_.Now(); }

  FakeClock clock_;
  WorkQueue queue_{clock_};
};

TEST_F(WorkQueueTest, AKeyWaitsOnceHoweverOftenItIsAdded) {
  queue_.Add("a");
  queue_.Add("b");
  queue_.Add("a");
  EXPECT_EQ(queue_.depth(), 2u);
  EXPECT_EQ(queue_.TryTake(), "a");
  EXPECT_EQ(queue_.TryTake(), "b");
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
}

TEST_F(WorkQueueTest, AKeyHasOneWorkerAtATime) {
  queue_.Add("a");
  ASSERT_EQ(queue_.TryTake(), "a");
  queue_.Add("a");
  queue_.Add("a");
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
  queue_.Done("a");
  EXPECT_EQ(queue_.TryTake(), "a");
  queue_.Done("a");
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
}

TEST_F(WorkQueueTest, TheEarliestOfSeveralTimesCounts) {
  queue_.AddAfter("a", seconds(10));
  queue_.AddAfter("a", seconds(5));
  queue_.AddAfter("a", seconds(20));
  EXPECT_EQ(UntilDue(), seconds(5));
  clock_.Advance(seconds(5) - milliseconds(1));
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(queue_.TryTake(), "a");
  queue_.Done("a");
  clock_.Advance(seconds(60));
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
}

TEST_F(WorkQueueTest, NoDelayIsNow) {
  queue_.AddAfter("a", seconds(0));
  queue_.AddAfter("b", -seconds(1));
  EXPECT_EQ(queue_.depth(), 2u);
}

TEST_F(WorkQueueTest, FailuresOfAKeyDoubleItsWait) {
  for (const int wait : {5, 10, 20, 40, 80}) {
    queue_.Retry("a");
    EXPECT_EQ(UntilDue(), milliseconds(wait));
    clock_.Advance(milliseconds(wait));
    ASSERT_EQ(queue_.TryTake(), "a");
    queue_.Done("a");
  }
  queue_.Forget("a");
  queue_.Retry("a");
  EXPECT_EQ(UntilDue(), milliseconds(5));
}

TEST_F(WorkQueueTest, TheWaitHasAnEnd) {
  for (int i = 0; i < 40; ++i) {
    queue_.Retry("a");
    ASSERT_LE(UntilDue(), seconds(1000));
    clock_.Advance(UntilDue());
    ASSERT_EQ(queue_.TryTake(), "a");
    queue_.Done("a");
  }
  queue_.Retry("a");
  EXPECT_EQ(UntilDue(), seconds(1000));
}

TEST_F(WorkQueueTest, AllRetriesTogetherHaveARate) {
  for (int i = 0; i < 100; ++i) {
    queue_.Retry("burst-" + std::to_string(i));
  }
  clock_.Advance(milliseconds(5));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(queue_.TryTake().has_value());
  }
  for (int i = 0; i < 20; ++i) {
    queue_.Retry("late-" + std::to_string(i));
  }
  clock_.Advance(seconds(1));
  int ready = 0;
  while (queue_.TryTake().has_value()) {
    ++ready;
  }
  EXPECT_GE(ready, 9);
  EXPECT_LE(ready, 11);
}

TEST_F(WorkQueueTest, ShuttingDownDropsWhatNobodyHasTakenAndTakesNothingNew) {
  queue_.Add("taken");
  EXPECT_EQ(queue_.Take(), "taken");
  queue_.Add("taken");
  queue_.Add("ready");
  queue_.AddAfter("later", seconds(1));
  queue_.ShutDown();
  queue_.Add("new");
  queue_.Retry("new");
  clock_.Advance(seconds(2));
  EXPECT_EQ(queue_.Take(), std::nullopt);
  EXPECT_FALSE(queue_.WaitUntilIdle(milliseconds(0)));
  queue_.Done("taken");
  EXPECT_EQ(queue_.Take(), std::nullopt);
  EXPECT_TRUE(queue_.WaitUntilIdle(milliseconds(0)));
}

TEST_F(WorkQueueTest, DoneOfAKeyThatNobodyTookIsNothing) {
  queue_.Done("a");
  queue_.Add("a");
  queue_.Done("a");
  EXPECT_EQ(queue_.TryTake(), "a");
}

class QueueObserver final : public WorkQueueObserver {
 public:
  void OnAdd() override { ++adds; }
  void OnDepth(std::size_t ready) override { depth = ready; }
  void OnTaken(Clock::Duration time) override { waited = time; }
  void OnDone(Clock::Duration time) override { worked = time; }
  void OnRetry() override { ++retries; }

  int adds = 0;
  std::size_t depth = 0;
  Clock::Duration waited{};
  Clock::Duration worked{};
  int retries = 0;
};

TEST(WorkQueueObserverTest, IsToldOfDepthAndTimes) {
  FakeClock clock;
  QueueObserver observer;
  WorkQueue queue(clock, {}, &observer);
  queue.Add("a");
  queue.Add("b");
  queue.Add("b");
  EXPECT_EQ(observer.adds, 2) << "a key is in the queue once";
  EXPECT_EQ(observer.depth, 2u);
  clock.Advance(seconds(3));
  ASSERT_EQ(queue.TryTake(), "a");
  EXPECT_EQ(observer.depth, 1u);
  EXPECT_EQ(observer.waited, seconds(3));
  clock.Advance(seconds(2));
  queue.Done("a");
  EXPECT_EQ(observer.worked, seconds(2));
  queue.Retry("a");
  EXPECT_EQ(observer.retries, 1);
}

}  // namespace
}  // namespace adamant::kube
