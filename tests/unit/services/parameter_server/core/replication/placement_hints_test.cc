#include "services/parameter_server/core/replication/placement_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/services/parameter_server/core/replication/host_mock.h"

namespace adamant::parameter_server {
namespace {

using testing::NiceMock;

constexpr ServerId kSelf{.slot = 0, .incarnation = 1};
constexpr ServerId kReplica{.slot = 1, .incarnation = 1};
constexpr ServerId kOther{.slot = 2, .incarnation = 1};

class PlacementHintsTest : public testing::Test {
 protected:
  PlacementHintsTest() {
    configuration_.primary = kSelf;
    configuration_.replicas = {kSelf, kReplica};
    peers_.Add(kReplica, Peer::Kind::kReplica, 0, now_);
  }

  const Clock::TimePoint now_{std::chrono::hours(1)};
  NiceMock<HostMock> host_;
  Configuration configuration_;
  EntryLog log_{EntryLog::Logging::kNothing};
  PeerTable peers_{ReplicationTimes{}};
  Proposer proposals_{7, kSelf, host_, configuration_, log_};
  const PlacementHints hints_{kSelf, configuration_, peers_, proposals_};
};

TEST_F(PlacementHintsTest, OnlyALivingReplicaIsASuccessor) {
  EXPECT_EQ(hints_.Successor(), std::nullopt);
  for (const ServerId& server : {kSelf, kOther}) {
    configuration_.successor = server;
    EXPECT_EQ(hints_.Successor(), std::nullopt);
  }
  configuration_.successor = kReplica;
  EXPECT_EQ(hints_.Successor(), kReplica);
  peers_.SetDead({kReplica});
  EXPECT_EQ(hints_.Successor(), std::nullopt);
}

TEST_F(PlacementHintsTest, AReplicaIsDroppedOnceAtATime) {
  configuration_.departing = kReplica;
  EXPECT_EQ(hints_.Departing(), kReplica);
  proposals_.Propose(Proposal::Kind::kDrop, kReplica, false, now_);
  EXPECT_EQ(hints_.Departing(), std::nullopt);
}

TEST_F(PlacementHintsTest, ALearnerWaitsUntilItsCopyBegins) {
  configuration_.learner = kOther;
  EXPECT_EQ(hints_.Learner(), kOther);
  EXPECT_FALSE(hints_.GivesUpCopy());
  peers_.Add(kOther, Peer::Kind::kCopying, 0, now_);
  EXPECT_EQ(hints_.Learner(), std::nullopt);
  EXPECT_FALSE(hints_.GivesUpCopy());
  configuration_.learner.reset();
  EXPECT_TRUE(hints_.GivesUpCopy());
}

TEST_F(PlacementHintsTest, WhoIsProposedMayBeWantedNoMore) {
  configuration_.learner = kOther;
  proposals_.Propose(Proposal::Kind::kAdd, kOther, false, now_);
  EXPECT_EQ(hints_.NotToAdd(), std::nullopt);
  configuration_.learner.reset();
  EXPECT_EQ(hints_.NotToAdd(), kOther);
}

}  // namespace
}  // namespace adamant::parameter_server
