#include "operator/core/processes/process_starter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/processes/small_table.h"

namespace adamant::controller {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ProcessStarterTest : public SmallTable {
 protected:
  ProcessStarter starter_{settings_, outbox_, processes_};
};

TEST_F(ProcessStarterTest, EverySlotOfTheRoleGetsAProcessOfTheNextGeneration) {
  processes_.Record(kWorker1) = {.generation = 3, .joined = 2};
  starter_.StartRole(Role::kWorker, {}, now_);
  const auto actions = Take();
  EXPECT_THAT(Pick<StartProcess>(actions),
              ElementsAre(StartProcess{kWorker0, 1}, StartProcess{kWorker1, 4}));
  EXPECT_THAT(Pick<Persist>(actions), SizeIs(1));
  EXPECT_EQ(processes_.Record(kWorker1).joined, 0u);
  EXPECT_EQ(At(kWorker1).liveness, Liveness::kStarting);
  EXPECT_EQ(At(kWorker1).deadline, now_ + settings_.join_timeout);
}

TEST_F(ProcessStarterTest, WhoIsKnownIsAwaitedOrWaitsWhereItsLossIsJudged) {
  processes_.Record(kWorker0) = {.generation = 3};
  processes_.Record(kWorker1) = {.generation = 3, .concluded = 3, .losses = 1};
  starter_.StartRole(Role::kWorker, {{{kWorker0, 3}, {kWorker1, 3}}}, now_);
  EXPECT_THAT(Pick<StartProcess>(Take()), IsEmpty());
  EXPECT_EQ(At(kWorker0).liveness, Liveness::kStarting);
  EXPECT_EQ(At(kWorker1).liveness, Liveness::kWaiting);
  EXPECT_EQ(At(kWorker1).deadline, now_ + settings_.restart_backoff);
}

TEST_F(ProcessStarterTest, ASlotTooManyStaysFree) {
  settings_.workers = 1;
  starter_.StartRole(Role::kWorker, {}, now_);
  EXPECT_THAT(Pick<StartProcess>(Take()), ElementsAre(StartProcess{kWorker0, 1}));
  EXPECT_TRUE(At(kWorker1).exited);
}

TEST_F(ProcessStarterTest, TheNextProcessStartsWhenTheWaitIsOverAndTheLastHasEnded) {
  At(kWorker0).WaitUntil(now_ + seconds(5));
  EXPECT_EQ(starter_.NextTimer(), std::nullopt);
  At(kWorker0).exited = true;
  At(kWorker0).last_words = "of the one before";
  EXPECT_EQ(starter_.NextTimer(), now_ + seconds(5));
  starter_.StartDue(now_ + seconds(4));
  EXPECT_THAT(Pick<StartProcess>(Take()), IsEmpty());
  starter_.StartDue(now_ + seconds(5));
  EXPECT_THAT(Pick<StartProcess>(Take()), ElementsAre(StartProcess{kWorker0, 1}));
  EXPECT_FALSE(At(kWorker0).exited);
  EXPECT_EQ(At(kWorker0).last_words, "");
}

}  // namespace
}  // namespace adamant::controller
