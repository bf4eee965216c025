// Beginnings, transfers, demotions and restores.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "tests/unit/services/parameter_server/core/replication/rig.h"

namespace adamant::parameter_server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Role = Replica::Role;

void NameSuccessor(Rig& rig, std::uint32_t successor) {
  rig.record.successor = rig[successor].self;
  for (const std::uint32_t slot : {0U, 1U, 2U}) {
    rig.replica(slot).OnConfiguration(rig.record, rig.now());
  }
}

// --- Beginnings

TEST(ReplicaRolesTest, ABucketIsCreatedOnceThenServed) {
  Rig rig({.servers = 1, .copies = 1});
  EXPECT_THAT(rig[0].loads, ElementsAre(true));
  EXPECT_EQ(rig[0].served, 1);
  EXPECT_EQ(rig.replica(0).role(), Role::kServing);
}

// If its server died, the bucket would be created anew.
TEST(ReplicaRolesTest, NothingIsAppendedBeforeTheRecordSaysThatTheBucketIsCreated) {
  std::deque<Packet> packets;
  const ServerId self{.slot = 0, .incarnation = 1};
  RigServer server(self, {.self = self, .times = {}}, packets);
  Configuration record{.version = 1, .generation = 1, .primary = self, .replicas = {self}};
  const Clock::TimePoint now{seconds(1)};
  server.replica.OnConfiguration(record, now);
  server.replica.Loaded(now);
  EXPECT_EQ(server.served, 1) << "so that the controller hears of it";
  EXPECT_FALSE(server.replica.CanAppend());
  record.created = true;
  server.replica.OnConfiguration(record, now);
  EXPECT_TRUE(server.replica.CanAppend());
}

TEST(ReplicaRolesTest, APrimaryThatIsToComeBackFromItsDiskForgetsWhatItHeldAndWhoWaits) {
  Rig rig({.servers = 1, .copies = 1});
  rig.Append(0, "a");
  ++rig.record.generation;
  rig.Write(0, {0});
  EXPECT_EQ(rig[0].cleared, 1);
  EXPECT_THAT(rig[0].loads, ElementsAre(true, false));
  EXPECT_EQ(rig.replica(0).role(), Role::kLoading);
}

TEST(ReplicaRolesTest, ARestoredBucketIsLoadedThenServed) {
  Rig rig({.servers = 2, .copies = 1});
  rig.Crash(0);
  ++rig.record.generation;
  rig.Write(1, {1});
  EXPECT_THAT(rig[1].loads, ElementsAre(false));
  EXPECT_EQ(rig.replica(1).role(), Role::kLoading);
  EXPECT_FALSE(rig.replica(1).CanRead(rig.now()));
  EXPECT_FALSE(rig.replica(1).CanAppend());
  rig.replica(1).Loaded(rig.now());
  EXPECT_EQ(rig.replica(1).role(), Role::kServing);
  rig.Append(1, "a");
  EXPECT_THAT(rig[1].content, ElementsAre("a"));
  rig.replica(1).Loaded(rig.now());  // twice does no harm
  EXPECT_EQ(rig[1].served, 1);
}

TEST(ReplicaRolesTest, WhatWasHeldInAnEarlierGenerationIsNotServed) {
  Rig rig({.copies = 2});
  rig.names_learners = false;
  rig.Append(0, "a");
  rig.Settle();
  rig.Crash(0);
  ++rig.record.generation;
  rig.Write(1, {1});  // it was a replica
  EXPECT_EQ(rig.replica(1).role(), Role::kLoading);
  EXPECT_THAT(rig[1].loads, ElementsAre(false));
  EXPECT_EQ(rig.replica(1).log().prepared(), 0U);
}

TEST(ReplicaRolesTest, APrimaryThatIsReplacedWhileItLoadsForgetsIt) {
  Rig rig({.servers = 2, .copies = 1});
  rig.Crash(0);
  ++rig.record.generation;
  rig.Write(1, {1});
  rig.Write(0, {0});
  EXPECT_EQ(rig.replica(1).role(), Role::kNone);
  EXPECT_EQ(rig[1].demoted, 1);
  EXPECT_EQ(rig[1].cleared, 1);
  rig.replica(1).Loaded(rig.now());
  EXPECT_EQ(rig.replica(1).role(), Role::kNone);
}

TEST(ReplicaRolesTest, OldRecordsAreIgnored) {
  Rig rig;
  const Configuration old = rig.record;
  rig.Write(1, {0, 1, 2});
  rig.replica(0).OnConfiguration(old, rig.now());
  EXPECT_EQ(rig.replica(0).configuration().version, rig.record.version);
  EXPECT_EQ(rig.replica(0).role(), Role::kSecondary);
}

TEST(ReplicaRolesTest, ANewPrimaryServesWhenItsWholeLogIsCommittedInItsConfiguration) {
  Rig rig;
  rig.names_learners = false;
  rig.Append(0, "a");
  rig.Settle();
  rig.Crash(0);
  rig.Write(1, {1, 2});
  EXPECT_EQ(rig.replica(1).role(), Role::kReconciling);
  EXPECT_FALSE(rig.replica(1).CanRead(rig.now()));
  EXPECT_FALSE(rig.replica(1).CanAppend());
  rig.Settle();
  EXPECT_EQ(rig.replica(1).role(), Role::kServing);
  EXPECT_TRUE(rig.replica(1).CanRead(rig.now()));
}

TEST(ReplicaRolesTest, ANewPrimaryBelowMinInSyncIsCopiedFromAndThenServes) {
  Rig rig({.copies = 2, .min_in_sync = 2});
  rig.Append(0, "a");
  rig.Settle();
  rig.names_learners = false;
  rig.Crash(0);
  rig.Pass(seconds(5));
  EXPECT_THAT(rig.members(), ElementsAre(1));
  EXPECT_EQ(rig.replica(1).role(), Role::kReconciling);
  rig.names_learners = true;
  rig.Publish();
  rig.Settle();
  EXPECT_THAT(rig.members(), SizeIs(2));
  EXPECT_EQ(rig.replica(1).role(), Role::kServing);
  EXPECT_THAT(rig[1].content, ElementsAre("a"));
}

// --- Changes of a configuration under one primary

TEST(ReplicaRolesTest, APrimaryServesOnWhenOnlyReplicasChange) {
  Rig rig;
  rig.names_learners = false;
  rig.Cut(2, 0);
  rig.Append(0, "a");
  rig.Settle();
  rig.Write(0, {0, 1});
  EXPECT_EQ(rig.replica(0).role(), Role::kServing);
  EXPECT_EQ(rig[0].demoted, 0);
  rig.Settle();
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
  EXPECT_EQ(rig[0].served, 1);
}

TEST(ReplicaRolesTest, ADepartingReplicaIsDropped) {
  Rig rig;
  rig.names_learners = false;
  rig.record.departing = rig[2].self;
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 1));
  EXPECT_EQ(rig.replica(2).role(), Role::kNone);
  EXPECT_EQ(rig[2].cleared, 1);
}

// --- Transfer

TEST(ReplicaRolesTest, ATransferDrainsReleasesAndKeepsTheOldPrimaryAsAMember) {
  Rig rig;
  rig.Cut(2, 0);
  rig.Append(0, "a");
  NameSuccessor(rig, 1);
  rig.Settle();
  EXPECT_EQ(rig.replica(0).role(), Role::kDraining);
  EXPECT_FALSE(rig.replica(0).CanAppend());
  EXPECT_FALSE(rig.replica(0).CanRead(rig.now()));
  EXPECT_EQ(rig.primary(), 0U) << "a is not committed";
  rig.Heal();
  rig.Pass(milliseconds(1100));
  EXPECT_EQ(rig.primary(), 1U);
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  EXPECT_EQ(rig.replica(1).role(), Role::kServing);
  EXPECT_EQ(rig.replica(0).role(), Role::kSecondary);
  EXPECT_EQ(rig[0].demoted, 1);
  EXPECT_EQ(rig[0].cleared, 0);
  rig.Append(1, "b");
  rig.Pass(milliseconds(600));
  EXPECT_THAT(rig[0].content, ElementsAre("a", "b"));
}

TEST(ReplicaRolesTest, ATransferIsProposedAtOnceAsReleased) {
  Rig rig;
  rig.decides = false;
  NameSuccessor(rig, 2);
  rig.Settle();
  ASSERT_THAT(rig[2].proposals, SizeIs(1));
  EXPECT_TRUE(rig[2].proposals[0].released);
  EXPECT_THAT(rig[1].proposals, IsEmpty());
  rig.Pass(milliseconds(350));  // told again, not asked again
  EXPECT_THAT(rig[2].proposals, SizeIs(1));
}

TEST(ReplicaRolesTest, AReleaseThatIsLostIsRepeated) {
  Rig rig;
  rig.Drop(
      [](const Packet& packet) { return std::holds_alternative<Released>(packet.message.kind); });
  NameSuccessor(rig, 1);
  rig.Settle();
  EXPECT_EQ(rig.primary(), 0U);
  rig.Drop(nullptr);
  rig.Pass(milliseconds(200));
  EXPECT_EQ(rig.primary(), 1U);
}

TEST(ReplicaRolesTest, WhenTheSuccessorDiesTheOldPrimaryServesAgain) {
  Rig rig;
  rig.names_learners = false;
  rig.decides = false;
  NameSuccessor(rig, 1);
  rig.Settle();
  ASSERT_EQ(rig.replica(0).role(), Role::kDraining);
  rig.Crash(1);
  rig.decides = true;
  rig.ProveDeaths();
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 2));
  EXPECT_EQ(rig.replica(0).role(), Role::kServing);
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now()));
  EXPECT_EQ(rig[0].demoted, 0);
}

TEST(ReplicaRolesTest, ASuccessorThatCannotReachTheControllerIsDropped) {
  Rig rig;
  rig.names_learners = false;
  rig.deaf = {1};
  NameSuccessor(rig, 1);
  rig.Pass(seconds(4));
  EXPECT_THAT(rig.members(), ElementsAre(0, 2));
  EXPECT_EQ(rig.replica(0).role(), Role::kServing);
}

TEST(ReplicaRolesTest, ATransferGoesOnWhenTheHintIsTakenBack) {
  Rig rig;
  rig.Cut(2, 0);
  rig.Append(0, "a");
  NameSuccessor(rig, 1);
  rig.Settle();
  ASSERT_EQ(rig.replica(0).role(), Role::kDraining);
  rig.record.successor.reset();
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  rig.Heal();
  rig.Pass(milliseconds(1100));
  EXPECT_EQ(rig.primary(), 1U);
}

TEST(ReplicaRolesTest, ACopyUnderWayIsGivenUpForATransfer) {
  Rig rig({.copies = 2});
  rig.names_learners = false;
  rig.Drop(
      [](const Packet& packet) { return std::holds_alternative<CopyPart>(packet.message.kind); });
  rig.record.learner = rig[2].self;
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  rig.Settle();
  const int stopped = rig[0].stopped_copies;
  NameSuccessor(rig, 1);
  rig.Settle();
  EXPECT_EQ(rig[0].stopped_copies, stopped + 1);
  EXPECT_EQ(rig.primary(), 1U);
}

// --- Time

TEST(ReplicaRolesTest, WhoHoldsNothingHasNothingToDo) {
  Rig rig({.servers = 2, .copies = 1});
  EXPECT_EQ(rig.replica(1).NextTick(), Clock::TimePoint::max());
}

TEST(ReplicaRolesTest, ALearnerThatIsDeadLeavesNothingToDoNow) {
  Rig rig({.servers = 2, .copies = 1});
  rig.names_learners = false;
  rig.Crash(1);
  rig.Crash(1);
  rig.record.learner = {.slot = 1, .incarnation = 1};
  rig.ProveDeaths();
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  EXPECT_EQ(rig.replica(0).NextTick(), Clock::TimePoint::max());
}

}  // namespace
}  // namespace adamant::parameter_server
