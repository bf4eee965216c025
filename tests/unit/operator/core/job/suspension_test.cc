#include "operator/core/job/suspension.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "tests/unit/operator/core/job/job_parts.h"

namespace adamant::controller {
namespace {

using std::chrono::milliseconds;

// A job that trains, of which only checkpoints are stored; the newest is checkpoint 6.
class SuspensionTest : public JobParts {
 protected:
  SuspensionTest() {
    settings_.only_checkpoints = true;
    BeginTraining();
    state_.checkpoint.snapshot = 6;
  }

  void Request() { suspension_.Request({.reason = "for a while"}, now_); }
  [[nodiscard]] bool IsSuspended() const { return state_.phase == Phase::kSuspended; }

  Suspension suspension_{settings_, state_, training_, outcome_};
};

TEST_F(SuspensionTest, WithoutARequestNothingIsSuspended) {
  suspension_.OnTimer(now_);
  EXPECT_FALSE(IsSuspended());
  EXPECT_EQ(suspension_.NextTimer(), std::nullopt);
}

TEST_F(SuspensionTest, AJobWhoseParametersAreStoredIsSuspendedAtOnce) {
  settings_.only_checkpoints = false;
  Request();
  EXPECT_TRUE(IsSuspended());
  EXPECT_EQ(state_.message, "for a while");
}

TEST_F(SuspensionTest, WhereOnlyCheckpointsAreStoredOneIsTakenFirst) {
  Request();
  EXPECT_EQ(training_.NextTimer(), now_) << "it is due";
  suspension_.OnTimer(now_);
  EXPECT_FALSE(IsSuspended());
  state_.checkpoint.snapshot = 7;
  suspension_.OnTimer(now_);
  EXPECT_TRUE(IsSuspended());
  EXPECT_EQ(state_.message, "for a while");
}

TEST_F(SuspensionTest, WithoutACheckpointTheJobIsSuspendedAtTheEndOfTheTimeForIt) {
  Request();
  const Clock::TimePoint deadline = now_ + Suspension::kLastCheckpoint;
  EXPECT_EQ(suspension_.NextTimer(), deadline);
  suspension_.OnTimer(deadline - milliseconds(1));
  EXPECT_FALSE(IsSuspended());
  suspension_.OnTimer(deadline);
  EXPECT_TRUE(IsSuspended());
}

TEST_F(SuspensionTest, ARequestThatIsRepeatedChangesNothing) {
  Request();
  const Clock::TimePoint deadline = now_ + Suspension::kLastCheckpoint;
  now_ += milliseconds(500);
  state_.checkpoint.snapshot = 7;
  suspension_.Request({.reason = "again"}, now_);
  EXPECT_EQ(suspension_.NextTimer(), deadline);
  suspension_.OnTimer(now_);
  EXPECT_EQ(state_.message, "for a while");
}

TEST_F(SuspensionTest, WhoWantsItAtOnceGetsNoCheckpoint) {
  Request();
  suspension_.Request({.reason = "now", .at_once = true}, now_);
  EXPECT_TRUE(IsSuspended());
  EXPECT_EQ(state_.message, "now");
}

TEST_F(SuspensionTest, WhereNothingIsTrainedThatACheckpointLacksNoneIsTaken) {
  for (const Step step : {Step::kEvaluating, Step::kExporting}) {
    state_.step = step;
    state_.phase = Phase::kEvaluating;
    Request();
    EXPECT_TRUE(IsSuspended());
  }
}

class SuspensionBeforeTrainingTest : public JobParts {};

TEST_F(SuspensionBeforeTrainingTest, AJobThatHasNotBegunIsSuspendedAtOnce) {
  settings_.only_checkpoints = true;
  Suspension suspension(settings_, state_, training_, outcome_);
  suspension.Request({.reason = "for a while"}, now_);
  EXPECT_EQ(state_.phase, Phase::kSuspended);
}

}  // namespace
}  // namespace adamant::controller
