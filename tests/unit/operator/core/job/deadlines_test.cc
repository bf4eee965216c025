#include "operator/core/job/deadlines.h"

#include <gtest/gtest.h>

#include <chrono>

namespace adamant::controller {
namespace {

using std::chrono::seconds;

class DeadlinesTest : public testing::Test {
 protected:
  const Clock::TimePoint now_{std::chrono::hours(1)};
  JobSettings settings_;
  JobState state_;
  const Deadlines deadlines_{settings_, state_};
};

TEST_F(DeadlinesTest, WithoutOneNothingIsOver) {
  state_.active = seconds(1'000'000);
  EXPECT_EQ(deadlines_.WhyOver(), "");
  EXPECT_EQ(deadlines_.Next(now_, true), std::nullopt);
}

TEST_F(DeadlinesTest, TheOneThatIsOverIsNamed) {
  settings_.active_deadline = seconds(90);
  settings_.epoch_deadline = seconds(30);
  state_.epoch = 3;
  state_.epoch_active = seconds(29);
  EXPECT_EQ(deadlines_.Over(), "");
  state_.epoch_active = seconds(30);
  EXPECT_EQ(deadlines_.WhyOver(), "epoch 3 ran longer than spec.runPolicy.epochDeadline, 30 s");
  state_.active = seconds(90);
  EXPECT_EQ(deadlines_.WhyOver(), "the job ran longer than spec.runPolicy.activeDeadline, 90 s");
}

TEST_F(DeadlinesTest, TheNextIsTheEarlierOneAndAnEpochsCountsWhileOneIsTrained) {
  settings_.active_deadline = seconds(90);
  settings_.epoch_deadline = seconds(30);
  state_.active = seconds(10);
  state_.epoch_active = seconds(5);
  EXPECT_EQ(deadlines_.Next(now_, true), now_ + seconds(25));
  EXPECT_EQ(deadlines_.Next(now_, false), now_ + seconds(80));
}

}  // namespace
}  // namespace adamant::controller
