#include "operator/core/processes/worker_scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/processes/small_table.h"

namespace adamant::controller {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Pair;

class WorkerScalerTest : public SmallTable {
 protected:
  std::vector<SlotId> ScaleTo(std::uint32_t workers) {
    settings_.workers = workers;
    scaler_.AddWorkers(now_);
    return scaler_.DismissWorkers(now_);
  }

  WorkerScaler scaler_{settings_, processes_};
};

TEST_F(WorkerScalerTest, NewWorkersAreWantedOnceTheFirstOnesWere) {
  EXPECT_THAT(ScaleTo(3), IsEmpty());
  EXPECT_EQ(At({Role::kWorker, 2}).liveness, Liveness::kAbsent) << "they start with their role";
  Join(kWorker0, "a");
  EXPECT_THAT(ScaleTo(4), IsEmpty());
  for (const std::uint32_t added : {2u, 3u}) {
    EXPECT_EQ(At({Role::kWorker, added}).liveness, Liveness::kWaiting);
    EXPECT_EQ(At({Role::kWorker, added}).deadline, now_);
  }
  EXPECT_EQ(At(kWorker0).liveness, Liveness::kRunning);
}

TEST_F(WorkerScalerTest, OneThatRunsHasTimeToLeaveAndNobodyJudgesItsEnd) {
  processes_.Record(kWorker1).generation = 1;
  Join(kWorker1, "b", 8);
  Take();
  EXPECT_THAT(ScaleTo(1), IsEmpty());
  EXPECT_THAT(Sent<Stop>(Take()), ElementsAre(Pair(8, testing::_)));
  EXPECT_TRUE(At(kWorker1).leaving);
  EXPECT_EQ(At(kWorker1).deadline, now_ + WorkerScaler::kLeaveTimeout);
  EXPECT_EQ(processes_.Record(kWorker1).concluded, 1u);
  EXPECT_THAT(ScaleTo(1), IsEmpty());
  EXPECT_THAT(Sent<Stop>(Take()), IsEmpty()) << "once";
}

TEST_F(WorkerScalerTest, OneThatHasNotJoinedIsKilledAndGone) {
  At(kWorker1).liveness = Liveness::kStarting;
  EXPECT_THAT(ScaleTo(1), ElementsAre(kWorker1));
  EXPECT_THAT(Pick<KillProcess>(Take()), ElementsAre(Field(&KillProcess::id, kWorker1)));
  EXPECT_EQ(At(kWorker1).liveness, Liveness::kAbsent);
}

TEST_F(WorkerScalerTest, OneThatWaitsForItsRestartIsGone) {
  At(kWorker1).WaitUntil(now_);
  EXPECT_THAT(ScaleTo(1), ElementsAre(kWorker1));
  EXPECT_THAT(Pick<KillProcess>(Take()), IsEmpty());
}

}  // namespace
}  // namespace adamant::controller
