// What a learner keeps until its copy is there is bounded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/services/parameter_server/core/replication/learner_rig.h"

namespace adamant::parameter_server {
namespace {

using testing::ElementsAre;

/// A learner may keep three entries, its copy does not come, and two have been prepared since.
struct FullLearnerRig : LearnerRig {
  FullLearnerRig() : LearnerRig({.copies = 2, .max_log_bytes = 300}) {
    Hold(Is<CopyPart>);
    NameLearner();
    Settle();
    for (const char* name : {"a", "b"}) {
      Append(0, name);
      Settle();
    }
    EXPECT_TRUE(replica(0).CanAppend());
    Append(0, "c");
    Settle();
  }

  void LearnerIsAtIt() {
    replica(0).OnMessage(
        (*this)[2].self, Message(record.version, CopyAck{.copy = replica(2).copy()}), now());
  }
};

TEST(ReplicaCopyTest, TrafficWaitsForALearnerThatCanKeepNoMore) {
  FullLearnerRig rig;
  EXPECT_THAT(rig[0].content, ElementsAre("a", "b", "c")) << "what is prepared is committed";
  EXPECT_FALSE(rig.replica(0).CanAppend());
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now()));
  rig.Drop(nullptr);
  rig.Deliver(rig.held.at(0));
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(rig.replica(0).CanAppend());
}

TEST(ReplicaCopyTest, ACopyThatHoldsTrafficUpForALeaseIsGivenUpForAWhile) {
  FullLearnerRig rig;
  const int before = rig[0].stopped_copies;
  for (int i = 0; i < 6; ++i) {
    rig.Pass(milliseconds(500));
    rig.LearnerIsAtIt();
  }
  rig.Pass(milliseconds(100));
  EXPECT_TRUE(rig.replica(0).CanAppend());
  EXPECT_EQ(rig[0].stopped_copies, before + 1);
  rig.Pass(seconds(25));
  rig.Append(0, "d");
  EXPECT_EQ(rig.held.size(), 1U);
  rig.Drop(nullptr);
  rig.Pass(seconds(10));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace adamant::parameter_server
