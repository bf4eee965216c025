#include "operator/core/diagnosis/recovery.h"

#include <gtest/gtest.h>

#include <chrono>

namespace adamant::controller {
namespace {

using std::chrono::seconds;

/// A job in its third epoch, of 100 examples each, that goes back to the end of its first.
class RecoveryTest : public testing::Test {
 protected:
  RecoveryTest() {
    state_.last_snapshot = 4;
    state_.checkpoint = {.snapshot = 4, .epoch = 2, .buckets = {{.slot = 0}}};
    state_.recovery.first = {.snapshot = 1, .epoch = 1};
    state_.recovery.healthy = {.checkpoint = {.snapshot = 2, .epoch = 1, .buckets = {{.slot = 0}}},
                               .epoch = 2,
                               .examples = 100};
    state_.recovery.counted_examples = 200;
    state_.active = seconds(1'000);
    state_.productive = seconds(500);
  }

  JobState state_;
};

TEST_F(RecoveryTest, WhatIsUndoneTakesItsShareOfTheTimeThatTrainingGotOn) {
  TurnBack(state_, 50, 0.5);
  EXPECT_EQ(state_.recovery.undone_examples, 150u);
  EXPECT_EQ(state_.productive, seconds(200));  // 100 of 250 examples are left
  EXPECT_EQ(state_.active, seconds(1'000));
}

TEST_F(RecoveryTest, ASecondReturnTakesOfWhatIsLeft) {
  TurnBack(state_, 50, 0.5);
  state_.productive += seconds(100);
  TurnBack(state_, 100, 0.5);  // to the first weights: the model was not as healthy as it seemed
  EXPECT_EQ(state_.recovery.undone_examples, 350u);
  EXPECT_EQ(state_.productive, seconds(0));
}

TEST_F(RecoveryTest, AReturnThatUndoesNothingTakesNothing) {
  state_.recovery.counted_examples = 100;
  TurnBack(state_, 0, 0.5);
  EXPECT_EQ(state_.recovery.undone_examples, 0u);
  EXPECT_EQ(state_.productive, seconds(500));
}

TEST_F(RecoveryTest, AJobThatHasCountedNothingKeepsItsTime) {
  state_.recovery.counted_examples = 0;
  TurnBack(state_, 0, 0.5);
  EXPECT_EQ(state_.productive, seconds(500));
}

}  // namespace
}  // namespace adamant::controller
