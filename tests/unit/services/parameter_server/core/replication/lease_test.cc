// Leases, promises and proofs of death.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/services/parameter_server/core/replication/rig.h"

namespace adamant::parameter_server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Role = Replica::Role;

TEST(ReplicaLeaseTest, WithoutAnAnswerForTheLeaseThereIsNoReadAndNoCommit) {
  Rig rig;
  rig.decides = false;
  rig.Pass(seconds(1));
  ASSERT_TRUE(rig.replica(0).CanRead(rig.now()));
  rig.Drop([](const Packet& packet) {  // acknowledgements come, answers do not
    return std::holds_alternative<BeaconAnswer>(packet.message.kind) && packet.from.slot == 1;
  });
  rig.Pass(milliseconds(2400));
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now()));
  rig.Pass(milliseconds(700));
  EXPECT_FALSE(rig.replica(0).CanRead(rig.now()));
  rig.Append(0, "a");
  rig.Settle();
  EXPECT_EQ(rig.replica(1).log().prepared(), 1U);
  EXPECT_THAT(rig[0].content, IsEmpty());
}

TEST(ReplicaLeaseTest, ALeaseCountsFromTheSendingOfTheBeacon) {
  Rig rig;
  rig.decides = false;
  rig.Drop([&](const Packet& packet) {
    return std::holds_alternative<BeaconAnswer>(packet.message.kind);
  });
  rig.Pass(milliseconds(600));
  rig.Drop(nullptr);
  rig.replica(0).Tick(rig.now() + seconds(4));
  const std::deque<Packet> late = rig.Take();  // beacons sent four seconds from now
  rig.Sleep(seconds(6));
  for (const Packet& packet : late) {
    rig.Deliver(packet);
  }
  rig.Settle();
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now()));  // two seconds old
  rig.Sleep(seconds(1));
  EXPECT_FALSE(rig.replica(0).CanRead(rig.now()));  // although answered a second ago
}

TEST(ReplicaLeaseTest, APausedPrimaryWakesWithoutALease) {
  Rig rig;
  rig.Sleep(seconds(3));
  EXPECT_FALSE(rig.replica(0).CanRead(rig.now()));
}

TEST(ReplicaLeaseTest, ASinglePrimaryNeedsNoLease) {
  Rig rig({.servers = 1, .copies = 1});
  rig.Sleep(std::chrono::hours(1));
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now()));
}

TEST(ReplicaLeaseTest, ANewConfigurationNeedsANewLease) {
  Rig rig;
  rig.names_learners = false;
  rig.Write(0, {0, 1});
  EXPECT_FALSE(rig.replica(0).CanRead(rig.now()));
  rig.Settle();
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now()));
}

TEST(ReplicaLeaseTest, AnAnswerThatWasLostIsGivenAgainWhenTheWayIsOpen) {
  Rig rig;
  rig.names_learners = false;
  rig.Write(0, {0, 1});
  rig.Drop([](const Packet& packet) {
    return std::holds_alternative<BeaconAnswer>(packet.message.kind);
  });
  rig.Settle();
  ASSERT_FALSE(rig.replica(0).CanRead(rig.now()));
  rig.Drop(nullptr);
  rig.replica(1).OnConnected(rig[0].self, rig.now());
  rig.Settle();
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now())) << "without waiting for the next beacon";
}

TEST(ReplicaLeaseTest, AnAnswerThatIsGivenAgainCountsFromItsBeacon) {
  Rig rig;
  rig.decides = false;
  rig.Sleep(seconds(4));
  rig.replica(1).OnConnected(rig[0].self, rig.now());
  rig.Settle();
  EXPECT_FALSE(rig.replica(0).CanRead(rig.now()));
}

TEST(ReplicaLeaseTest, ASecondaryProposesOnlyWhenItsPromiseRanOut) {
  Rig rig;
  rig.decides = false;
  rig.Crash(0);
  rig.Pass(milliseconds(3400));
  EXPECT_EQ(rig.replica(1).role(), Role::kSecondary);
  rig.Pass(milliseconds(700));
  EXPECT_EQ(rig.replica(1).role(), Role::kProposing);
  EXPECT_EQ(rig.replica(2).role(), Role::kProposing);
  ASSERT_FALSE(rig[1].proposals.empty());
  const Proposal& proposal = rig[1].proposals[0];
  EXPECT_EQ(proposal.kind, Proposal::Kind::kPromote);
  EXPECT_EQ(proposal.proposer, rig[1].self);
  EXPECT_EQ(proposal.configuration_version, rig.record.version);
  EXPECT_FALSE(proposal.released);
}

TEST(ReplicaLeaseTest, AProposalIsRepeatedUntilAHigherConfigurationIsHeardOf) {
  Rig rig;
  rig.decides = false;
  rig.Crash(0);
  rig.Pass(seconds(6));
  EXPECT_GE(rig[1].proposals.size(), 4U);
  rig.Write(2, {1, 2});
  const std::size_t before = rig[1].proposals.size();
  rig.Pass(seconds(3));
  EXPECT_EQ(rig[1].proposals.size(), before);
  EXPECT_EQ(rig.replica(1).role(), Role::kSecondary);
}

TEST(ReplicaLeaseTest, WhoHasProposedPromisesNobodyButStillAcknowledgesEntries) {
  Rig rig;
  rig.decides = false;
  rig.Cut(0, 1);
  rig.Pass(milliseconds(4100));
  ASSERT_EQ(rig.replica(1).role(), Role::kProposing);
  rig.Heal();
  rig.Pass(seconds(1));
  EXPECT_FALSE(rig.replica(0).CanRead(rig.now()));
  rig.Append(0, "a");
  rig.Settle();
  EXPECT_EQ(rig.replica(1).log().prepared(), 1U);
}

TEST(ReplicaLeaseTest, AProvedDeathVoidsThePromiseAtOnce) {
  Rig rig;
  rig.decides = false;
  rig.Crash(0);
  rig.ProveDeaths();
  EXPECT_EQ(rig.replica(1).role(), Role::kProposing);
  EXPECT_EQ(rig.replica(2).role(), Role::kProposing);
}

TEST(ReplicaLeaseTest, ADeathProvedBeforeTheRecordIsHeardOfCountsToo) {
  Rig rig;
  rig.decides = false;
  rig.names_learners = false;
  rig.deaf = {2};
  rig.Write(1, {1, 2});
  rig.Take();
  rig.Crash(1);
  rig.ProveDeaths();
  EXPECT_EQ(rig.replica(2).role(), Role::kSecondary);
  rig.deaf.clear();
  rig.Publish();
  EXPECT_EQ(rig.replica(2).role(), Role::kProposing);
}

TEST(ReplicaLeaseTest, AnotherProcessOfTheSlotIsNotTheOneThatDied) {
  Rig rig;
  rig.decides = false;
  rig.replica(1).OnDead({{.slot = 0, .incarnation = rig[0].self.incarnation + 1}}, rig.now());
  EXPECT_EQ(rig.replica(1).role(), Role::kSecondary);
}

TEST(ReplicaLeaseTest, ASilentReplicaIsDropped) {
  Rig rig;
  rig.names_learners = false;
  rig.Crash(2);
  rig.Pass(milliseconds(2400));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  rig.Pass(milliseconds(800));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1));
  rig.Append(0, "a");
  rig.Settle();
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
}

TEST(ReplicaLeaseTest, ADeadReplicaIsDroppedAtOnce) {
  Rig rig;
  rig.names_learners = false;
  rig.Crash(2);
  rig.ProveDeaths();
  rig.Settle();
  EXPECT_THAT(rig.members(), ElementsAre(0, 1));
}

TEST(ReplicaLeaseTest, AReplicaThatAnswersBeaconsButTakesNoEntriesIsDropped) {
  Rig rig;
  rig.names_learners = false;
  rig.Drop([](const Packet& packet) {
    return std::holds_alternative<Prepare>(packet.message.kind) && packet.to.slot == 1;
  });
  rig.Append(0, "a");
  rig.Pass(milliseconds(5900));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  rig.Pass(seconds(1));
  EXPECT_THAT(rig.members(), ElementsAre(0, 2));
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
}

TEST(ReplicaLeaseTest, TwoSilentReplicasAreDroppedOneAfterTheOther) {
  Rig rig;
  rig.names_learners = false;
  rig.Crash(1);
  rig.Crash(2);
  rig.Pass(seconds(7));
  EXPECT_THAT(rig.members(), ElementsAre(0));
  EXPECT_EQ(rig.replica(0).role(), Role::kServing);
}

TEST(ReplicaLeaseTest, AReplicaThatIsBackBeforeItIsDroppedStays) {
  Rig rig;
  rig.names_learners = false;
  rig.decides = false;
  rig.Cut(2, 0);
  rig.Pass(milliseconds(3500));
  EXPECT_FALSE(rig[0].proposals.empty());
  rig.Heal();
  rig.Pass(seconds(1));
  rig[0].proposals.clear();
  rig.decides = true;
  rig.Pass(seconds(2));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now()));
}

TEST(ReplicaLeaseTest, OfTwoLostReplicasTheDeadOneIsDroppedFirst) {
  Rig rig;
  rig.decides = false;
  rig.CutOff(1);
  rig.Pass(milliseconds(3500));
  ASSERT_FALSE(rig[0].proposals.empty());
  EXPECT_EQ(rig[0].proposals.back().subject, rig[1].self);
  const ServerId dead = rig[2].self;
  rig.Crash(2);
  rig.ProveDeaths();
  EXPECT_EQ(rig[0].proposals.back().subject, dead);
  rig.Pass(seconds(1));
  EXPECT_EQ(rig[0].proposals.back().subject, dead);
}

TEST(ReplicaLeaseTest, APrimaryThatIsCutOffIsReplacedAndLearnsIt) {
  Rig rig;
  rig.names_learners = false;
  rig.CutOff(0);
  rig.deaf = {0};
  rig.Append(0, "a");
  rig.Pass(seconds(5));
  ASSERT_NE(rig.primary(), 0U);
  EXPECT_FALSE(rig.replica(0).CanRead(rig.now()));
  EXPECT_THAT(rig[0].content, IsEmpty());
  EXPECT_EQ(rig.replica(0).role(), Role::kServing);  // it has not heard
  rig.Heal();
  rig.deaf.clear();
  rig.Publish();
  EXPECT_EQ(rig.replica(0).role(), Role::kNone);
  EXPECT_EQ(rig[0].demoted, 1);
  EXPECT_EQ(rig[0].cleared, 1);
}

TEST(ReplicaLeaseTest, MembersHearOfTheRecordFromThePrimaryToo) {
  Rig rig;
  rig.names_learners = false;
  rig.deaf = {1};
  rig.Write(0, {0, 1});
  EXPECT_LT(rig.replica(1).configuration().version, rig.record.version);
  rig.Settle();
  EXPECT_EQ(rig.replica(1).configuration().version, rig.record.version);
  EXPECT_EQ(rig.replica(1).configuration().replicas, rig.record.replicas);
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now()));
}

TEST(ReplicaLeaseTest, APromotionSaysHowLongItsPhasesTook) {
  Rig rig;
  rig.names_learners = false;
  rig.Pass(milliseconds(100));
  rig.Crash(0);
  rig.Pass(seconds(5));
  const FailoverTimes times = rig.replica(rig.primary()).status().failover;
  EXPECT_EQ(times.detect_seconds, 4);
  EXPECT_LT(times.replace_seconds + times.reconcile_seconds, 0.1);
}

TEST(ReplicaLeaseTest, WhatComesLateAfterAReleaseRenewsNeitherPromiseNorLease) {
  Rig rig;
  rig.decides = false;
  rig.Sleep(milliseconds(500));
  rig.replica(0).Tick(rig.now());
  const std::deque<Packet> beacons = rig.Take();
  ASSERT_EQ(beacons.size(), 2U);
  rig.record.successor = rig[1].self;
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  rig.Settle();
  ASSERT_EQ(rig.replica(1).role(), Role::kProposing);
  for (const Packet& beacon : beacons) {
    rig.Deliver(beacon);
  }
  for (const Packet& answer : rig.packets) {
    EXPECT_NE(answer.from, rig[1].self) << "the successor has promised";
  }
  rig.Settle();
  EXPECT_FALSE(rig.replica(0).CanRead(rig.now()));
  EXPECT_FALSE(rig.replica(0).CanAppend());
  EXPECT_EQ(rig.replica(1).role(), Role::kProposing);
}

}  // namespace
}  // namespace adamant::parameter_server
