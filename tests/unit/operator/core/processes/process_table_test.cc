#include "operator/core/processes/process_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/processes/small_table.h"

namespace adamant::controller {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::SizeIs;

class ProcessTableTest : public SmallTable {};

TEST_F(ProcessTableTest, OnlyWhoIsConnectedIsReached) {
  Join(kWorker0, "a", 7);
  Join(kWorker1, "b", 8);
  processes_.OnDisconnected(8);
  Take();
  processes_.SendToAll(Role::kWorker, Stop{"now"});
  EXPECT_THAT(Sent<Stop>(Take()), ElementsAre(testing::Pair(7, testing::_)));
  EXPECT_EQ(processes_.Find(7), &At(kWorker0));
  EXPECT_EQ(processes_.Find(8), nullptr);
}

TEST_F(ProcessTableTest, WhoIsRetiredIsToldSoAndItsSlotIsFree) {
  Join(kWorker0, "a", 7);
  Take();
  processes_.Retire(At(kWorker0));
  const auto actions = Take();
  EXPECT_THAT(Sent<Refused>(actions), SizeIs(1));
  EXPECT_THAT(Pick<CloseConnection>(actions), ElementsAre(Field(&CloseConnection::connection, 7)));
  EXPECT_THAT(Pick<Persist>(actions), SizeIs(1));
  EXPECT_EQ(At(kWorker0).liveness, Liveness::kAbsent);
  EXPECT_EQ(processes_.Record(kWorker0).uid, "");
}

TEST_F(ProcessTableTest, ASlotThatIsVacatedIsFilledAgainUnlessItIsOneTooMany) {
  Join(kWorker0, "a");
  Join(kWorker1, "b");
  settings_.workers = 1;
  for (const SlotId id : {kWorker0, kWorker1}) {
    processes_.Record(id).generation = 3;
    processes_.Vacate(At(id), now_);
    EXPECT_EQ(processes_.Record(id).concluded, 3u);
  }
  EXPECT_EQ(At(kWorker0).liveness, Liveness::kWaiting);
  EXPECT_EQ(At(kWorker0).deadline, now_);
  EXPECT_EQ(At(kWorker1).liveness, Liveness::kAbsent);
}

TEST_F(ProcessTableTest, ASlotThatIsAddedIsAFreeWorkers) {
  const SlotId added{Role::kWorker, 2};
  EXPECT_FALSE(processes_.Has(added));
  processes_.AddSlot();
  ASSERT_TRUE(processes_.Has(added));
  EXPECT_EQ(At(added).id, added);
  EXPECT_TRUE(At(added).exited);
  EXPECT_EQ(processes_.VolumeOf(added), 1u) << "it has a record";
  EXPECT_THAT(Pick<Persist>(Take()), SizeIs(1));
}

TEST_F(ProcessTableTest, TheEndOfTheLastProcessSaysWhoItWas) {
  processes_.Record(kServer0).generation = 2;
  processes_.Record(kServer0).joined = 5;
  EXPECT_EQ(processes_.OnExited(At(kServer0), 1), 0u);
  EXPECT_FALSE(At(kServer0).exited);
  EXPECT_EQ(processes_.OnExited(At(kServer0), 2), 5u);
  EXPECT_TRUE(At(kServer0).exited);
}

TEST_F(ProcessTableTest, WhoHasJoinedMayPushUntilItIsGivenUp) {
  Join(kWorker0, "a");
  EXPECT_THAT(processes_.WritersFrom(), ElementsAre(1u, 1u)) << "the next of worker-1 is its first";
  processes_.Retire(At(kWorker0));
  EXPECT_THAT(processes_.WritersFrom(), ElementsAre(2u, 1u));
}

}  // namespace
}  // namespace adamant::controller
