#include "operator/core/processes/full_restart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/processes/small_table.h"

namespace adamant::controller {
namespace {

using testing::ElementsAre;
using testing::Field;

class FullRestartTest : public SmallTable {
 protected:
  FullRestart restart_{processes_};
};

TEST_F(FullRestartTest, AllAreKilledAndWantedAgainOnceTheyHaveEnded) {
  processes_.Record(kWorker0).generation = 1;
  Join(kWorker0, "a");
  At(kWorker1).liveness = Liveness::kStarting;
  Take();
  restart_.EndAll(now_);
  EXPECT_THAT(Pick<KillProcess>(Take()),
              ElementsAre(Field(&KillProcess::id, kWorker0), Field(&KillProcess::id, kWorker1)));
  EXPECT_EQ(processes_.Record(kWorker0).concluded, 1u) << "at no cost";
  for (const SlotId id : {kWorker0, kWorker1}) {
    EXPECT_EQ(At(id).liveness, Liveness::kWaiting);
    EXPECT_FALSE(restart_.AllEnded());
    At(id).exited = true;
  }
  EXPECT_TRUE(restart_.AllEnded());
}

TEST_F(FullRestartTest, WhoIsLostAlreadyAndMayLiveIsKilledTooAndKeepsItsWait) {
  At(kWorker0).WaitUntil(now_ + std::chrono::seconds(5));
  At(kWorker1).WaitUntil(now_);
  At(kWorker1).exited = true;
  restart_.EndAll(now_);
  EXPECT_THAT(Pick<KillProcess>(Take()), ElementsAre(Field(&KillProcess::id, kWorker0)));
  EXPECT_EQ(At(kWorker0).deadline, now_ + std::chrono::seconds(5));
}

TEST_F(FullRestartTest, AControllerThatBeginsWaitsForThoseThatAreKnown) {
  processes_.Record(kWorker0).generation = 1;
  processes_.Record(kWorker1).generation = 2;
  restart_.EndKnown({{{kWorker1, 2}}}, now_);
  EXPECT_THAT(Pick<KillProcess>(Take()),
              ElementsAre(Field(&KillProcess::id, kWorker0), Field(&KillProcess::id, kWorker1)));
  EXPECT_TRUE(At(kWorker0).exited);
  EXPECT_FALSE(At(kWorker1).exited);
  EXPECT_EQ(At(kServer0).liveness, Liveness::kWaiting);
}

}  // namespace
}  // namespace adamant::controller
