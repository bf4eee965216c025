#include "operator/core/job/active_time.h"

#include <gtest/gtest.h>

#include <chrono>

namespace adamant::controller {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ActiveTimeTest : public testing::Test {
 protected:
  ActiveTimeTest() {
    state_.phase = Phase::kRunning;
    time_.Begin(start_);
  }

  const Clock::TimePoint start_{std::chrono::hours(1)};
  JobState state_;
  TrainingMeter meter_{state_};
  ActiveTime time_{state_, meter_};
};

TEST_F(ActiveTimeTest, AnEpochsTimeCountsWhileItIsTrained) {
  time_.Advance(start_ + milliseconds(30), false);
  time_.Advance(start_ + milliseconds(50), true);
  EXPECT_EQ(state_.active, milliseconds(50));
  EXPECT_EQ(state_.epoch_active, milliseconds(20));
}

TEST_F(ActiveTimeTest, TrainingGetsOnWhileExamplesAreCounted) {
  const DataServerProgress none{.epoch = 1, .counted_examples = 0, .total_examples = 1000};
  const DataServerProgress some{.epoch = 1, .counted_examples = 64, .total_examples = 1000};
  meter_.StartEpoch(1);
  meter_.OnDataServer(0, none, start_);
  time_.Advance(start_ + seconds(2), true);
  EXPECT_EQ(state_.productive, milliseconds(0));
  meter_.OnDataServer(0, some, start_ + seconds(2));
  time_.Advance(start_ + seconds(3), true);
  EXPECT_EQ(state_.productive, seconds(1));
  time_.Advance(start_ + seconds(8), true);  // it stands
  EXPECT_EQ(state_.productive, seconds(1));
  EXPECT_EQ(state_.active, seconds(8));
}

TEST_F(ActiveTimeTest, TrainingGetsOnWhileAResultIsMade) {
  state_.phase = Phase::kEvaluating;
  time_.Advance(start_ + milliseconds(30), true);
  state_.phase = Phase::kStarting;
  time_.Advance(start_ + milliseconds(70), false);
  EXPECT_EQ(state_.productive, milliseconds(30));
  EXPECT_EQ(state_.active, milliseconds(70));
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
