#include "operator/core/job/active_time.h"

#include <gtest/gtest.h>

#include <chrono>

namespace adamant::controller {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class ActiveTimeTest : public testing::Test {
 protected:
  ActiveTimeTest() {
    state_.phase = Phase::kRunning;
    time_.Begin(start_);
  }

  const Clock::TimePoint start_{std::chrono::hours(1)};
  JobState state_;
  ActiveTime time_{state_};
};

TEST_F(ActiveTimeTest, AnEpochsTimeCountsWhileItIsTrained) {
  time_.Advance(start_ + milliseconds(30), false);
  time_.Advance(start_ + milliseconds(50), true);
  EXPECT_EQ(state_.active, milliseconds(50));
  EXPECT_EQ(state_.epoch_active, milliseconds(20));
}

TEST_F(ActiveTimeTest, PartsOfAMillisecondAddUp) {
  for (int i = 1; i <= 4; ++i) {
    time_.Advance(start_ + microseconds(600) * i, true);
  }
  EXPECT_EQ(state_.active, milliseconds(2));
  EXPECT_EQ(time_.counted_until(), start_ + milliseconds(2));
}

TEST_F(ActiveTimeTest, AJobThatHasEndedIsNotActive) {
  state_.phase = Phase::kSucceeded;
  time_.Advance(start_ + milliseconds(30), true);
  EXPECT_EQ(state_.active, milliseconds(0));
  EXPECT_EQ(time_.counted_until(), start_ + milliseconds(30));
}

}  // namespace
}  // namespace adamant::controller
