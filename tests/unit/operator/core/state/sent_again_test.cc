#include "operator/core/state/sent_again.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace adamant::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SentAgainTest : public testing::Test {
 protected:
  // What is told once every worker has sent all that it has.
  std::vector<std::string> Told() {
    TellSentAgain(settings_, state_, outbox_);
    std::vector<std::string> texts;
    for (const Action& action : outbox_.Take(state_)) {
      if (const auto* note = std::get_if<Note>(&action)) {
        texts.push_back(note->text);
      }
    }
    return texts;
  }

  JobSettings settings_;
  JobState state_;
  Outbox outbox_;
};

TEST_F(SentAgainTest, WithoutALossOfAllCopiesNothingIsTold) {
  CountLost(state_, 2);
  CountWorkerGone(state_);
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_EQ(state_.rolled_back, RolledBack());
  EXPECT_EQ(state_.unrecorded_losses, 2u);
}

TEST_F(SentAgainTest, ItIsToldOnceThatAllHasBeenSentAgain) {
  CountRolledBack(state_, 230);
  EXPECT_THAT(Told(),
              ElementsAre("all that was applied after the last flush, and lost with all copies, "
                          "has been sent again"));
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(SentAgainTest, WhatWorkersCouldNotSendAgainIsToldAsLost) {
  CountRolledBack(state_, 230);
  CountLost(state_, 220);
  CountLost(state_, 15);
  EXPECT_EQ(state_.unrecorded_losses, 235u);
  EXPECT_THAT(Told(),
              ElementsAre("at least 235 updates are lost that all copies had and no disk: no "
                          "worker could send them again"));
  EXPECT_EQ(state_.unrecorded_losses, 235u) << "they stay lost";
}

TEST_F(SentAgainTest, WhatHadDiedWithAWorkerIsNotDenied) {
  CountRolledBack(state_, 230);
  CountWorkerGone(state_);
  EXPECT_THAT(Told(),
              ElementsAre("all that was applied after the last flush, and lost with all copies, "
                          "has been sent again; what a worker had of it that has ended since is "
                          "not counted"));
}

TEST_F(SentAgainTest, WorkersThatKeepNothingSendNothingAgain) {
  settings_.workers_retain = false;
  CountRolledBack(state_, 230);
  EXPECT_THAT(Told(), IsEmpty()) << "they have not found out yet";
  EXPECT_TRUE(state_.rolled_back.open);
  CountWorkerGone(state_);
  EXPECT_THAT(Told(),
              ElementsAre("230 updates that all copies had and no disk were not sent again: "
                          "workers keep none (retain: 0)"));
  CountRolledBack(state_, 0);
  CountWorkerGone(state_);
  EXPECT_THAT(Told(), IsEmpty()) << "nothing was known to be rolled back";
  EXPECT_FALSE(state_.rolled_back.open);
}

}  // namespace
}  // namespace adamant::controller
