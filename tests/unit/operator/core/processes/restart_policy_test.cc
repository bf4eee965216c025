#include "operator/core/processes/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/processes/small_table.h"

namespace adamant::controller {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::SizeIs;

class RestartPolicyTest : public SmallTable {
 protected:
  RestartPolicyTest() {
    processes_.Record(kWorker0).generation = 1;
    Join(kWorker0, "a");
    Take();
  }

  absl::Status Lose(const ProcessLoss& loss) {
    restarts_.MarkLost(At(kWorker0), loss, now_);
    return restarts_.DecideRestart(At(kWorker0));
  }

  RestartPolicy restarts_{settings_, state_, outbox_, processes_};
};

TEST_F(RestartPolicyTest, WhoIsLostWaitsForItsNextProcess) {
  restarts_.MarkLost(At(kWorker0), {.how = "was silent"}, now_);
  EXPECT_EQ(At(kWorker0).liveness, Liveness::kWaiting);
  EXPECT_EQ(At(kWorker0).deadline, now_);
  EXPECT_TRUE(At(kWorker0).loss.has_value());
  EXPECT_EQ(processes_.Record(kWorker0).uid, "");
  EXPECT_THAT(Pick<Note>(Take()), ElementsAre(Field(&Note::kind, Note::Kind::kLost)));
}

TEST_F(RestartPolicyTest, ALossCostsARestartAndAWaitThatDoubles) {
  EXPECT_TRUE(Lose({.how = "exited"}).ok());
  EXPECT_EQ(At(kWorker0).deadline, now_ + settings_.restart_backoff);
  EXPECT_EQ(processes_.Record(kWorker0).concluded, 1u);
  EXPECT_EQ(state_.restarts, 1u);
  EXPECT_TRUE(Lose({.how = "exited"}).ok());
  EXPECT_EQ(At(kWorker0).deadline, now_ + 2 * settings_.restart_backoff);
  EXPECT_THAT(Pick<Persist>(Take()), SizeIs(1));
}

TEST_F(RestartPolicyTest, WhatEndedItFromOutsideCostsNothingAndNoWaitTheFirstTime) {
  EXPECT_TRUE(Lose({.how = "was evicted", .cause = LossCause::kDisruption}).ok());
  EXPECT_EQ(At(kWorker0).deadline, now_);
  EXPECT_TRUE(Lose({.how = "was evicted", .cause = LossCause::kDisruption}).ok());
  EXPECT_EQ(At(kWorker0).deadline, now_ + settings_.restart_backoff);
  EXPECT_EQ(state_.restarts, 0u);
}

TEST_F(RestartPolicyTest, OneThatRanWellHasMadeItsLossesGood) {
  processes_.Record(kWorker0).losses = 2;
  now_ += 2 * settings_.restart_backoff * RestartPolicy::kRanWell;
  EXPECT_TRUE(Lose({.how = "exited"}).ok());
  EXPECT_EQ(processes_.Record(kWorker0).losses, 1u);
}

TEST_F(RestartPolicyTest, TheJobFailsOnceTheBudgetIsSpentOrARestartIsOfNoUse) {
  const absl::Status refused = Lose({.how = "exited", .bad_configuration = true});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  settings_.restart_limit = 0;
  At(kWorker0).last_words = "no memory";
  const absl::Status spent = Lose({.how = "exited"});
  EXPECT_TRUE(absl::IsResourceExhausted(spent)) << spent;
  EXPECT_THAT(std::string(spent.message()), HasSubstr("no memory"));
  EXPECT_EQ(state_.restarts, 0u);
}

TEST_F(RestartPolicyTest, WhomTheLastControllerGaveUpIsJudgedUnlessItsEndWillBeTold) {
  processes_.Retire(At(kWorker0));
  EXPECT_TRUE(restarts_.DecideGivenUp({{{kWorker0, 1}}}).ok());
  EXPECT_EQ(state_.restarts, 0u);
  EXPECT_TRUE(restarts_.DecideGivenUp({}).ok());
  EXPECT_EQ(state_.restarts, 1u);
  EXPECT_TRUE(restarts_.DecideGivenUp({}).ok());
  EXPECT_EQ(state_.restarts, 1u) << "it is concluded";
}

TEST_F(RestartPolicyTest, TheFirstLossIsFollowedByTheFirstWait) {
  EXPECT_EQ(DelayAfterLosses(seconds(1), 0), seconds(0));
  EXPECT_EQ(DelayAfterLosses(seconds(1), 1), seconds(1));
  EXPECT_EQ(DelayAfterLosses(seconds(1), 3), seconds(4));
}

}  // namespace
}  // namespace adamant::controller
