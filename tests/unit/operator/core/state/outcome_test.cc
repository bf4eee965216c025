#include "operator/core/state/outcome.h"

#include <gtest/gtest.h>

namespace adamant::controller {
namespace {

class OutcomeTest : public testing::Test {
 protected:
  OutcomeTest() { state_.phase = Phase::kRunning; }

  JobState state_;
  Outbox outbox_;
  Outcome outcome_{state_, outbox_};
};

TEST_F(OutcomeTest, TheFirstWordCountsAndIsStored) {
  EXPECT_FALSE(outcome_.IsDecided());
  outcome_.End(Phase::kSuspended, "as its user wants it");
  outcome_.FailOn(absl::DataLossError("a bucket is lost"), EndKind::kAllLost);
  outcome_.FailAsInvalid("the data is another");
  EXPECT_TRUE(outcome_.IsDecided());
  EXPECT_EQ(state_.phase, Phase::kSuspended);
  EXPECT_EQ(state_.message, "as its user wants it");
  EXPECT_EQ(state_.end, EndKind::kOther);
  EXPECT_FALSE(state_.invalid);
  const std::vector<Action> actions = outbox_.Take(state_);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Persist>(actions.front()));
}

TEST_F(OutcomeTest, WhatIsNoErrorEndsNothing) {
  outcome_.FailOn(absl::OkStatus());
  outcome_.FailOnLoss(absl::OkStatus());
  EXPECT_FALSE(outcome_.IsDecided());
  EXPECT_TRUE(outbox_.Take(state_).empty());
}

TEST_F(OutcomeTest, ALossForWhichNoRestartIsLeftIsToldApart) {
  outcome_.FailOnLoss(absl::ResourceExhaustedError("worker-1 has died 3 times"));
  EXPECT_EQ(state_.phase, Phase::kFailed);
  EXPECT_EQ(state_.end, EndKind::kOutOfRestarts);
}

TEST_F(OutcomeTest, AManifestThatIsWrongIsToldApart) {
  outcome_.FailAsInvalid("spec.data has no examples");
  EXPECT_EQ(state_.phase, Phase::kFailed);
  EXPECT_EQ(state_.message, "spec.data has no examples");
  EXPECT_TRUE(state_.invalid);
}

}  // namespace
}  // namespace adamant::controller
