#include <gtest/gtest.h>

#include "tests/bench/stale/pace.h"
#include "tests/bench/stale/step_clock.h"
#include "tests/bench/stale/virtual_clock.h"
#include "tests/bench/stale/virtual_network.h"

namespace adamant::bench {
namespace {

Clock::TimePoint At(double steps) { return Clock::TimePoint() + VirtualClock::DurationOf(steps); }

Clock::Duration Steps(double steps) { return VirtualClock::DurationOf(steps); }

TEST(PaceTest, StepsVaryByTheJitter) {
  Pace pace({.step = 2, .jitter = 0.25}, /*seed=*/1);
  bool differ = false;
  for (int i = 0; i < 100; ++i) {
    const Clock::Duration step = pace.NextStep();
    EXPECT_GE(step, Steps(1.5));
    EXPECT_LE(step, Steps(2.5));
    differ = differ || step != pace.NextStep();
  }
  EXPECT_TRUE(differ);
}

TEST(PaceTest, WorkRestsInPauses) {
  const Pace pace({.pause = {.every = 10, .lasts = 4}}, /*seed=*/1);
  EXPECT_EQ(pace.Done(At(1), Steps(2)), At(3));
  EXPECT_EQ(pace.Done(At(1), Steps(5)), At(6));  // to the moment at which it stops
  EXPECT_EQ(pace.Done(At(5), Steps(2)), At(11));
  EXPECT_EQ(pace.Done(At(5), Steps(8)), At(21));  // two pauses
  EXPECT_EQ(pace.Done(At(7), Steps(1)), At(11));  // begun in a pause
}

TEST(PaceTest, NobodyIsAwakeInAPause) {
  const Pace pace({.pause = {.every = 10, .lasts = 4}}, /*seed=*/1);
  EXPECT_EQ(pace.Awake(At(5)), At(5));
  EXPECT_EQ(pace.Awake(At(6)), At(10));
  EXPECT_EQ(pace.Awake(At(19)), At(20));
  EXPECT_EQ(pace.Awake(At(20)), At(20));
}

TEST(PaceTest, WithoutPausesWorkGoesOn) {
  const Pace pace({}, /*seed=*/1);
  EXPECT_EQ(pace.Done(At(1), Steps(1000)), At(1001));
  EXPECT_EQ(pace.Awake(At(1)), At(1));
}

TEST(StepClockTest, AStepLastsForItsThread) {
  VirtualClock clock;
  StepClock seen(clock);
  seen.Begin(At(3));
  EXPECT_EQ(seen.Now(), At(0));
  EXPECT_EQ(seen.Now(), At(3));
  seen.Begin(At(5));
  EXPECT_EQ(seen.Now(), At(0));
}

TEST(VirtualNetworkTest, MessagesTakeTurnsOnBothLinks) {
  const VirtualNetwork network({.latency = 1, .bandwidth = 100});
  VirtualLink first;
  VirtualLink second;
  VirtualLink server;
  EXPECT_EQ(network.Send(At(0), 200, 1, first, server), At(3));
  EXPECT_EQ(network.Send(At(0), 100, 1, second, server), At(4));  // behind it
  EXPECT_EQ(network.Send(At(0), 100, 1, server, first), At(2));   // the other way
  VirtualLink other_server;
  EXPECT_EQ(network.Send(At(0), 100, 1, first, other_server), At(4));  // behind its own first one
}

TEST(VirtualNetworkTest, EndlessBandwidthLeavesTheLatency) {
  const VirtualNetwork network({.latency = 0.5});
  VirtualLink worker;
  VirtualLink server;
  EXPECT_EQ(network.Send(At(1), 1'000'000'000, 1, worker, server), At(1.5));
  EXPECT_EQ(network.Send(At(1), 1'000'000'000, 1, worker, server), At(1.5));
}

TEST(VirtualNetworkTest, LatencyVaries) {
  const VirtualNetwork network({.latency = 2});
  VirtualLink worker;
  VirtualLink server;
  EXPECT_EQ(network.Send(At(1), 0, 1.5, worker, server), At(4));
}

TEST(VirtualNetworkTest, AServerAppliesOnePushAfterTheOther) {
  const VirtualNetwork network({.apply = 2});
  VirtualLink server;
  EXPECT_EQ(network.Apply(At(1), server), At(3));
  EXPECT_EQ(network.Apply(At(2), server), At(5));
  EXPECT_EQ(network.Apply(At(9), server), At(11));
}

}  // namespace
}  // namespace adamant::bench
