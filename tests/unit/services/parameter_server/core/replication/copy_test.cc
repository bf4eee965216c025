// Learners: copied to, joint, added, given up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "tests/unit/services/parameter_server/core/replication/learner_rig.h"

namespace adamant::parameter_server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Role = Replica::Role;

TEST(ReplicaCopyTest, ALearnerIsCopiedToAndAdded) {
  LearnerRig rig;
  ASSERT_THAT(rig.members(), ElementsAre(0, 1));
  rig.Append(0, "a");
  rig.Settle();
  rig.NameLearner();
  EXPECT_EQ(rig.replica(2).role(), Role::kNone);
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  EXPECT_EQ(rig.replica(2).role(), Role::kSecondary);
  EXPECT_EQ(rig.replica(2).copy(), 0U);
  EXPECT_THAT(rig[2].content, ElementsAre("a"));
}

TEST(ReplicaCopyTest, EntriesPreparedDuringTheCopyReachTheLearnerAndDoNotWaitForIt) {
  LearnerRig rig;
  rig.Append(0, "a");
  rig.Settle();
  rig.Hold(Is<CopyPart>);
  rig.NameLearner();
  rig.Settle();
  EXPECT_EQ(rig.replica(2).role(), Role::kLearner);
  rig.Cut(2, 0);
  rig.Append(0, "b");
  rig.Settle();
  EXPECT_THAT(rig[0].content, ElementsAre("a", "b"));
  EXPECT_EQ(rig.replica(2).log().prepared(), 2U);
  EXPECT_THAT(rig[2].content, IsEmpty());  // it has nothing to apply it to
  EXPECT_THAT(rig.members(), ElementsAre(0, 1));
  rig.Heal();
  rig.Drop(nullptr);
  rig.Deliver(rig.held.at(0));
  rig.Settle();  // the answer to its first beacon says what it has
  EXPECT_THAT(rig[2].content, ElementsAre("a", "b"));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
}

TEST(ReplicaCopyTest, CommitsWaitForAJointLearnerAndTheLeaseCountsIt) {
  LearnerRig rig;
  rig.decides = false;
  rig.NameLearner();
  rig.Settle();
  ASSERT_EQ(rig[0].proposals.size(), 1U);
  EXPECT_EQ(rig[0].proposals[0].kind, Proposal::Kind::kAdd);
  EXPECT_EQ(rig[0].proposals[0].subject, rig[2].self);
  rig.Cut(2, 0);
  rig.Append(0, "a");
  rig.Settle();
  EXPECT_THAT(rig[0].content, IsEmpty());
  rig.Pass(seconds(4));
  EXPECT_FALSE(rig.replica(0).CanRead(rig.now()));
  EXPECT_EQ(rig.replica(0).role(), Role::kServing);
}

TEST(ReplicaCopyTest, OnceProposedALearnerIsNotGivenUpBeforeTheControllerHasDecided) {
  LearnerRig rig;
  rig.decides = false;
  rig.NameLearner();
  rig.Settle();
  const ConfigurationVersion before = rig.record.version;
  rig.Crash(2);
  rig.ProveDeaths();
  rig.Pass(seconds(10));
  rig.Append(0, "a");
  rig.Settle();
  EXPECT_THAT(rig[0].content, IsEmpty()) << "it may be a replica by now";
  rig.decides = true;
  rig.Pass(seconds(1));
  EXPECT_EQ(rig.record.version, before + 2);  // added, dropped
  EXPECT_THAT(rig.members(), ElementsAre(0, 1));
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
}

TEST(ReplicaCopyTest, ALearnerNeedsWhatAnEarlierPrimaryMayHaveCommitted) {
  LearnerRig rig({.copies = 2, .min_in_sync = 2});
  rig.names_learners = false;
  rig.Append(0, "a");
  rig.Settle();  // committed; 1 does not know
  ASSERT_THAT(rig[0].content, ElementsAre("a"));
  ASSERT_THAT(rig[1].content, IsEmpty());
  rig.Crash(0);
  rig.Write(1, {1});
  rig.Drop([](const Packet& packet) { return Is<Prepare>(packet); });
  rig.record.learner = rig[2].self;
  rig.replica(1).OnConfiguration(rig.record, rig.now());
  rig.Settle();
  EXPECT_EQ(rig.replica(2).role(), Role::kLearner);
  EXPECT_THAT(rig.members(), ElementsAre(1));
  rig.Drop(nullptr);
  rig.Pass(seconds(2));
  EXPECT_THAT(rig.members(), ElementsAre(1, 2));
  EXPECT_THAT(rig[1].content, ElementsAre("a"));
}

TEST(ReplicaCopyTest, ALearnerThatIsNotAddedAndFallsSilentIsDropped) {
  LearnerRig rig;
  rig.adds = false;
  rig.NameLearner();
  rig.Settle();
  const ConfigurationVersion before = rig.record.version;
  rig.Crash(2);
  rig.Append(0, "a");
  rig.Pass(milliseconds(2400));
  EXPECT_EQ(rig.record.version, before);
  EXPECT_THAT(rig[0].content, IsEmpty());
  rig.Pass(seconds(1));
  EXPECT_EQ(rig.record.version, before + 1);
  EXPECT_THAT(rig.members(), ElementsAre(0, 1));
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
}

TEST(ReplicaCopyTest, ALearnerThatIsProposedAndNoLongerNamedIsDropped) {
  LearnerRig rig;
  rig.adds = false;
  rig.NameLearner();
  rig.Settle();
  const ConfigurationVersion before = rig.record.version;
  rig.Cut(2, 0);
  rig.Append(0, "a");
  rig.record.learner.reset();
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  rig.Settle();
  EXPECT_EQ(rig.record.version, before + 1);
  EXPECT_THAT(rig.members(), ElementsAre(0, 1));
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
  EXPECT_EQ(rig.replica(2).role(), Role::kNone);
}

// It may be a replica by now, and the one whose disk comes back.
TEST(ReplicaCopyTest, NothingIsDurableWithoutALearnerThatIsProposed) {
  LearnerRig rig;
  rig.adds = false;
  rig.NameLearner();
  rig.Settle();
  rig.AppendUpdate(0);
  rig.Pass(milliseconds(600));  // the replicas know that it is committed
  rig.replica(0).Flushed(1);
  rig.replica(1).Flushed(1);
  rig.Pass(milliseconds(600));
  EXPECT_EQ(rig.replica(0).durable(), 0U);
  rig.replica(2).Flushed(1);
  rig.Pass(milliseconds(600));
  EXPECT_EQ(rig.replica(0).durable(), 1U);
}

// Found by seed 3030631 of the replication simulation: what changes nothing counts as on disk at
// once, and a learner that began before it would have to flush, which nobody does.
TEST(ReplicaCopyTest, WhereNothingIsEverFlushedALearnerIsAddedAllTheSame) {
  LearnerRig rig;
  rig.Hold(Is<CopyPart>);
  rig.NameLearner();
  rig.Settle();
  rig.Append(0, "a");
  rig.Pass(milliseconds(600));
  ASSERT_EQ(rig.replica(0).durable(), 1U);
  rig.AppendUpdate(0);
  rig.Pass(milliseconds(600));
  rig.Drop(nullptr);
  rig.Deliver(rig.held.at(0));
  rig.Pass(milliseconds(2000));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
}

TEST(ReplicaCopyTest, AReplicaCanBeDroppedWhileALearnerIsProposed) {
  LearnerRig rig;
  rig.adds = false;
  rig.NameLearner();
  rig.Settle();
  rig.Crash(1);
  rig.ProveDeaths();
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0));
}

TEST(ReplicaCopyTest, ADropThatIsRefusedDoesNotKeepALearnerAway) {
  LearnerRig rig;
  rig.drops = false;
  rig.Cut(1, 0);
  rig.Pass(seconds(4));
  ASSERT_THAT(rig.members(), ElementsAre(0, 1));
  rig.names_learners = false;
  rig.record.learner = rig[2].self;
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  rig.drops = true;
  rig.Pass(seconds(4));
  EXPECT_THAT(rig.members(), ElementsAre(0, 2));
}

TEST(ReplicaCopyTest, AnotherConfigurationStartsTheCopyAnew) {
  LearnerRig rig;
  rig.Append(0, "a");
  rig.Settle();
  rig.Hold(Is<CopyPart>);
  rig.NameLearner();
  rig.Settle();
  const std::uint64_t first = rig.replica(2).copy();
  rig.Write(0, {0, 1});
  rig.record.learner = rig[2].self;
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  rig.Settle();
  EXPECT_GT(rig.replica(2).copy(), first);
  EXPECT_EQ(rig[0].stopped_copies, 2) << "one was made to make 1 a replica";
  rig.Drop(nullptr);
  for (const Packet& packet : rig.held) {
    rig.Deliver(packet);
  }
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  EXPECT_THAT(rig[2].content, ElementsAre("a"));
}

TEST(ReplicaCopyTest, ABrokenStreamStartsTheCopyAnew) {
  LearnerRig rig;
  rig.Append(0, "a");
  rig.Settle();
  rig.Hold(Is<CopyPart>);
  rig.NameLearner();
  rig.Settle();
  ASSERT_EQ(rig.held.size(), 1U);
  rig.Drop(nullptr);
  rig.replica(0).OnConnected(rig[2].self, rig.now());
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  EXPECT_THAT(rig[2].content, ElementsAre("a"));
}

TEST(ReplicaCopyTest, ACopyWithoutProgressIsGivenUpAndBegunAgain) {
  LearnerRig rig;
  rig.Hold(Is<CopyPart>);
  rig.NameLearner();
  rig.Pass(milliseconds(2900));
  EXPECT_EQ(rig.held.size(), 1U);
  rig.Pass(milliseconds(400));
  EXPECT_EQ(rig.held.size(), 2U);
  rig.Drop(nullptr);
  rig.Pass(seconds(4));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
}

TEST(ReplicaCopyTest, ALearnerThatLacksWhatIsNoLongerInTheLogIsCopiedToAnew) {
  LearnerRig rig;
  rig.Hold([](const Packet& packet) {
    return Is<CopyPart>(packet) || (Is<Prepare>(packet) && packet.to.slot == 2);
  });
  rig.NameLearner();
  rig.Settle();
  rig.Append(0, "a");
  rig.Settle();
  ASSERT_THAT(rig[0].content, ElementsAre("a"));
  rig.Drop(nullptr);
  rig.Append(0, "b");
  rig.Deliver(rig.held.at(0));  // the part
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 1));
  rig.Pass(seconds(1));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  EXPECT_THAT(rig[2].content, ElementsAre("a", "b"));
}

TEST(ReplicaCopyTest, AcknowledgementsOfACopyThatWasGivenUpCountForNothing) {
  LearnerRig rig;
  rig.Hold([](const Packet& packet) {
    return Is<CopyPart>(packet) || (packet.from.slot == 2 && Is<PrepareAck>(packet));
  });
  rig.NameLearner();
  rig.Settle();
  rig.Cut(1, 0);
  rig.Append(0, "a");  // prepared, not committed
  rig.Settle();
  ASSERT_EQ(rig.held.size(), 2U);
  const Packet ack = rig.held.at(1);
  rig.replica(0).OnConnected(rig[2].self, rig.now());  // the second copy
  const auto prepare = [](const Packet& packet) { return Is<Prepare>(packet); };
  rig.Hold([](const Packet& packet) {
    return packet.to.slot == 2 && (Is<CopyPart>(packet) || Is<Prepare>(packet));
  });
  rig.Settle();
  rig.Deliver(ack);
  rig.Heal();
  rig.Pass(milliseconds(1050));
  ASSERT_EQ(rig.replica(0).log().committed(), 1U);
  ASSERT_EQ(rig.replica(2).role(), Role::kLearner);
  ASSERT_EQ(rig.replica(2).log().prepared(), 0U);
  rig.Drop(prepare);
  rig.Deliver(*std::ranges::find_if(rig.held, [&](const Packet& packet) {
    return Is<CopyPart>(packet) &&
           std::get<CopyPart>(packet.message.kind).copy == rig.replica(2).copy();
  }));
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 1)) << "it lacks a";
  rig.Drop(nullptr);
  rig.Pass(seconds(2));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  EXPECT_THAT(rig[2].content, ElementsAre("a"));
}

TEST(ReplicaCopyTest, AnOldCopyBeginIsIgnored) {
  LearnerRig rig;
  rig.Hold(Is<CopyPart>);
  rig.NameLearner();
  const std::deque<Packet> first = rig.Take();
  for (const Packet& packet : first) {
    rig.Deliver(packet);
  }
  rig.replica(0).OnConnected(rig[2].self, rig.now());
  rig.Settle();
  const std::uint64_t copy = rig.replica(2).copy();
  const int cleared = rig[2].cleared;
  EXPECT_EQ(rig[2].begun_copies, 2);
  rig.Deliver(first.at(0));
  EXPECT_EQ(rig.replica(2).copy(), copy);
  EXPECT_EQ(rig[2].cleared, cleared);
  EXPECT_EQ(rig[2].begun_copies, 2);
}

TEST(ReplicaCopyTest, ADeadLearnerIsGivenUpAndNotTriedAgain) {
  LearnerRig rig;
  rig.Hold(Is<CopyPart>);
  rig.NameLearner();
  rig.Settle();
  rig.Crash(2);
  rig.ProveDeaths();
  EXPECT_EQ(rig[0].stopped_copies, 2);
  rig.Pass(seconds(5));
  EXPECT_EQ(rig.held.size(), 1U);
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now()));
}

TEST(ReplicaCopyTest, AnotherLearnerMayBeNamed) {
  LearnerRig rig({.servers = 4, .copies = 2});
  rig.Hold([](const Packet& packet) { return Is<CopyPart>(packet) && packet.to.slot == 2; });
  rig.NameLearner();
  rig.Settle();
  rig.record.learner = rig[3].self;
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 3));
  rig.Settle();
  EXPECT_EQ(rig.replica(2).role(), Role::kNone);
}

TEST(ReplicaCopyTest, ARestartedReplicaIsAReplicaOfNothing) {
  LearnerRig rig;
  rig.names_learners = false;
  rig.Append(0, "a");
  rig.Settle();
  rig.Crash(1);
  rig.Publish();
  EXPECT_EQ(rig.replica(1).role(), Role::kNone);
  rig.Append(0, "b");
  rig.Settle();
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
  rig.Pass(seconds(4));
  EXPECT_THAT(rig.members(), ElementsAre(0));
  EXPECT_THAT(rig[0].content, ElementsAre("a", "b"));
}

TEST(ReplicaCopyTest, AReplicaThatLacksWhatThePrimaryTakesForGrantedLeaves) {
  LearnerRig rig;
  rig.names_learners = false;
  rig.Cut(0, 1);
  rig.deaf = {1};  // so that it believes to be the replica that it was
  rig.Write(0, {0});
  rig.Append(0, "a");
  rig.Settle();
  ASSERT_EQ(rig.replica(1).role(), Role::kSecondary);
  rig.Heal();
  rig.Write(0, {0, 1});
  rig.Settle();
  EXPECT_EQ(rig.replica(1).role(), Role::kNone);
  rig.deaf.clear();
  rig.Pass(seconds(4));
  EXPECT_THAT(rig.members(), ElementsAre(0));
}

}  // namespace
}  // namespace adamant::parameter_server
