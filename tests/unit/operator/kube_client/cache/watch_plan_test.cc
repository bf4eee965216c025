#include "operator/kube_client/cache/watch_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/fakes/fake_clock.h"

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Step = WatchPlan::Step;

constexpr Clock::Duration kAtOnce{0};

class WatchPlanTest : public ::testing::Test {
 protected:
  void Complete(const std::string& version) {
    plan_.Next();
    plan_.OnComplete(version);
  }

  FakeClock clock_;
  WatchPlan plan_{clock_, 1};
};

TEST_F(WatchPlanTest, TheStreamOfAWatchListGoesOnAsAWatch) {
  EXPECT_EQ(plan_.Next().step, Step::kWatchList);
  plan_.OnComplete("10");
  EXPECT_TRUE(plan_.OnChange("11"));
  clock_.Advance(minutes(5));
  EXPECT_EQ(plan_.Ended(absl::OkStatus()), kAtOnce);
  const WatchPlan::Action next = plan_.Next();
  EXPECT_EQ(next.step, Step::kWatch);
  EXPECT_EQ(next.resource_version, "11");
}

TEST_F(WatchPlanTest, AServerWithoutWatchListIsAskedForAList) {
  for (const absl::Status& refusal :
       {absl::InvalidArgumentError("sendInitialEvents is forbidden"),
        absl::InternalError("RequestWatchProgress is disabled"),
        absl::OkStatus(),
        absl::DeadlineExceededError("no end of the initial events")}) {
    WatchPlan plan(clock_, 1);
    ASSERT_EQ(plan.Next().step, Step::kWatchList);
    EXPECT_EQ(plan.Ended(refusal), kAtOnce) << refusal;
    EXPECT_EQ(plan.Next().step, Step::kList) << refusal;
    plan.OnComplete("10");
    EXPECT_EQ(plan.Ended(absl::OkStatus()), kAtOnce);
    EXPECT_EQ(plan.Next().step, Step::kWatch);
    // It is not asked again.
    plan.Ended(absl::OutOfRangeError("too old"));
    EXPECT_EQ(plan.Next().step, Step::kList);
  }
}

TEST_F(WatchPlanTest, AServerThatIsAwayIsNotTakenForAnOldOne) {
  plan_.Next();
  EXPECT_GE(plan_.Ended(absl::UnavailableError("connection refused")), milliseconds(800));
  EXPECT_EQ(plan_.Next().step, Step::kWatchList);
  EXPECT_GT(plan_.Ended(absl::NotFoundError("no such resource yet")), kAtOnce);
  EXPECT_EQ(plan_.Next().step, Step::kWatchList);
}

TEST_F(WatchPlanTest, AResourceThatIsInstalledAnewIsSeenAtOnce) {
  Complete("10");
  EXPECT_LE(plan_.Ended(absl::NotFoundError("the resource was deleted")), seconds(2));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(plan_.Next().step, Step::kWatchList);
    const Clock::Duration wait = plan_.Ended(absl::NotFoundError("no such resource"));
    EXPECT_GT(wait, kAtOnce);
    EXPECT_LE(wait, seconds(2));
    clock_.Advance(wait);
  }
}

TEST_F(WatchPlanTest, BookmarksMoveTheVersionOn) {
  Complete("10");
  EXPECT_TRUE(plan_.OnBookmark("20"));
  plan_.Ended(absl::UnavailableError("cut"));
  EXPECT_EQ(plan_.Next().resource_version, "20");
}

TEST_F(WatchPlanTest, AVersionThatIsTooOldMeansANewList) {
  Complete("10");
  EXPECT_GT(plan_.Ended(absl::OutOfRangeError("too old")), kAtOnce);
  EXPECT_EQ(plan_.Next().step, Step::kWatchList);
}

TEST_F(WatchPlanTest, WhatMakesNoSenseMeansANewList) {
  for (const absl::Status& end : {absl::DataLossError("garbage"),
                                  absl::InternalError("500"),
                                  absl::PermissionDeniedError("403"),
                                  absl::InvalidArgumentError("bad version")}) {
    WatchPlan plan(clock_, 1);
    plan.Next();
    plan.OnComplete("10");
    EXPECT_GT(plan.Ended(end), kAtOnce) << end;
    EXPECT_EQ(plan.Next().step, Step::kWatchList) << end;
  }
}

TEST_F(WatchPlanTest, AServerThatIsAwayIsResumedAt) {
  for (const absl::Status& end : {absl::UnavailableError("refused"),
                                  absl::ResourceExhaustedError("429"),
                                  absl::UnauthenticatedError("token")}) {
    WatchPlan plan(clock_, 1);
    plan.Next();
    plan.OnComplete("10");
    EXPECT_GT(plan.Ended(end), kAtOnce) << end;
    EXPECT_EQ(plan.Next().resource_version, "10") << end;
  }
}

TEST_F(WatchPlanTest, AHistoryThatGoesBackMeansANewList) {
  Complete("1000");
  EXPECT_FALSE(plan_.OnBookmark("999"));
  EXPECT_GT(plan_.Ended(absl::OkStatus()), kAtOnce);
  EXPECT_EQ(plan_.Next().step, Step::kWatchList);
  plan_.OnComplete("1000");
  EXPECT_TRUE(plan_.OnChange("1000"));
  EXPECT_FALSE(plan_.OnChange(""));
}

TEST_F(WatchPlanTest, VersionsThatAreNoNumbersAreTakenAsTheyAre) {
  Complete("b");
  EXPECT_TRUE(plan_.OnChange("a"));
  EXPECT_EQ(plan_.resource_version(), "a");
}

TEST_F(WatchPlanTest, WaitsDoubleUpToTenSecondsAndVaryByChance) {
  double base = 0.8;
  for (int i = 0; i < 12; ++i) {
    plan_.Next();
    const std::chrono::duration<double> wait =
        plan_.Ended(absl::UnavailableError("connection refused"));
    EXPECT_GE(wait.count(), base);
    EXPECT_LE(wait.count(), 2 * base);
    base = std::min(10.0, 2 * base);
    clock_.Advance(std::chrono::duration_cast<Clock::Duration>(wait));
  }
}

TEST_F(WatchPlanTest, ReflectorsThatFailTogetherDoNotReturnTogether) {
  WatchPlan other(clock_, 2);
  plan_.Next();
  other.Next();
  const absl::Status away = absl::UnavailableError("connection refused");
  EXPECT_NE(plan_.Ended(away), other.Ended(away));
}

TEST_F(WatchPlanTest, TwoMinutesWithoutAFailureForgetThem) {
  for (int i = 0; i < 8; ++i) {
    plan_.Next();
    plan_.Ended(absl::UnavailableError("refused"));
  }
  Complete("10");
  clock_.Advance(minutes(2) + seconds(1));
  EXPECT_LE(plan_.Ended(absl::ResourceExhaustedError("429")), milliseconds(1600));
}

TEST_F(WatchPlanTest, AWatchThatEndsAtOnceIsNotRepeatedAtOnce) {
  Complete("10");
  plan_.Ended(absl::UnavailableError("cut"));
  plan_.Next();
  EXPECT_GT(plan_.Ended(absl::OkStatus()), kAtOnce);
  plan_.Next();
  EXPECT_GT(plan_.Ended(absl::DeadlineExceededError("504")), kAtOnce);
}

TEST_F(WatchPlanTest, AWatchThatIsCutIsResumedAtOnce) {
  Complete("10");
  clock_.Advance(WatchPlan::kFlaky);
  EXPECT_EQ(plan_.Ended(absl::UnavailableError("connection reset by peer")), kAtOnce);
  EXPECT_EQ(plan_.Next().step, Step::kWatch);
}

TEST_F(WatchPlanTest, AWatchThatIsCutEverySecondIsResumedAfterAFewSeconds) {
  Complete("10");
  double base = 0.8;
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(seconds(1));
    const std::chrono::duration<double> wait =
        plan_.Ended(absl::UnavailableError("connection reset by peer"));
    EXPECT_GE(wait.count(), base);
    EXPECT_LE(wait.count(), 2 * base);
    base = std::min(3.2, 2 * base);
    clock_.Advance(std::chrono::duration_cast<Clock::Duration>(wait));
    EXPECT_EQ(plan_.Next().step, Step::kWatch);
  }
}

TEST_F(WatchPlanTest, LifetimesVaryBetweenFiveAndTenMinutes) {
  std::vector<std::chrono::seconds> lifetimes;
  Complete("10");
  for (int i = 0; i < 100; ++i) {
    plan_.OnChange("10");
    plan_.Ended(absl::OkStatus());
    lifetimes.push_back(plan_.Next().lifetime);
  }
  std::sort(lifetimes.begin(), lifetimes.end());
  EXPECT_GE(lifetimes.front(), minutes(5));
  EXPECT_LT(lifetimes.front(), minutes(6));
  EXPECT_GT(lifetimes.back(), minutes(9));
  EXPECT_LE(lifetimes.back(), minutes(10));
}

TEST_F(WatchPlanTest, SilenceIsResumedWithinHalfAMinuteAndKeepsTheVersionFresh) {
  EXPECT_LT(WatchPlan::kIdle, seconds(30));
  Complete("10");
  // A watch falls silent: it is ended, and resumed from where it was.
  clock_.Advance(WatchPlan::kIdle);
  EXPECT_EQ(plan_.Ended(absl::DeadlineExceededError("silent")), kAtOnce);
  WatchPlan::Action next = plan_.Next();
  EXPECT_EQ(next.step, Step::kWatch);
  EXPECT_EQ(next.resource_version, "10");
  // What follows is short enough for the bookmark before its end to come before the silence is
  // taken for the connection's.
  EXPECT_LT(next.lifetime, WatchPlan::kIdle);
  EXPECT_TRUE(plan_.OnBookmark("50"));
  clock_.Advance(next.lifetime);
  EXPECT_EQ(plan_.Ended(absl::OkStatus()), kAtOnce);
  next = plan_.Next();
  EXPECT_EQ(next.resource_version, "50");
  EXPECT_LT(next.lifetime, WatchPlan::kIdle);
  // As soon as something happens, watches are long again.
  EXPECT_TRUE(plan_.OnChange("51"));
  clock_.Advance(next.lifetime);
  plan_.Ended(absl::OkStatus());
  EXPECT_GE(plan_.Next().lifetime, minutes(5));
}

}  // namespace
}  // namespace adamant::kube
