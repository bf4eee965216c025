#include "services/parameter_server/core/replication/peer_table.h"

#include <gtest/gtest.h>

#include <chrono>

namespace adamant::parameter_server {
namespace {

using std::chrono::seconds;

constexpr ServerId kOne{1, 1};
constexpr ServerId kTwo{2, 1};

class PeerTableTest : public testing::Test {
 protected:
  Clock::TimePoint At(int second) { return start_ + seconds(second); }

  Peer& Add(const ServerId& server, Peer::Kind kind) { return table_.Add(server, kind, 5, start_); }

  const Clock::TimePoint start_{std::chrono::hours(1)};
  PeerTable table_{ReplicationTimes{}};  // a lease of 3 s
};

TEST_F(PeerTableTest, ALearnerThatIsBeingCopiedToCountsForNothing) {
  Add(kOne, Peer::Kind::kReplica).acked = 8;
  Peer& learner = Add(kTwo, Peer::Kind::kCopying);
  EXPECT_EQ(table_.AckedByAll(9), 8u);
  EXPECT_EQ(table_.OnAllDisks(9), 0u);
  table_.Find(kOne)->flushed = 7;
  EXPECT_EQ(table_.OnAllDisks(9), 7u);
  learner.kind = Peer::Kind::kJoint;
  EXPECT_EQ(table_.AckedByAll(9), 5u);
  EXPECT_EQ(table_.OnAllDisks(9), 0u);
  EXPECT_TRUE(table_.RemoveLearner());
  EXPECT_FALSE(table_.RemoveLearner());
  EXPECT_EQ(table_.AckedByAll(9), 8u);
}

TEST_F(PeerTableTest, TheLeaseHoldsWhileAllHaveAnsweredBeaconsThatAreYoungEnough) {
  EXPECT_TRUE(table_.LeaseHolds(start_));  // alone
  Add(kOne, Peer::Kind::kReplica);
  EXPECT_FALSE(table_.LeaseHolds(start_));
  table_.Find(kOne)->answered = At(1);
  EXPECT_TRUE(table_.LeaseHolds(At(3)));
  EXPECT_FALSE(table_.LeaseHolds(At(4)));
}

TEST_F(PeerTableTest, WhoIsProvedToBeDeadIsDroppedBeforeWhoIsSilent) {
  Add(kOne, Peer::Kind::kReplica);
  Add(kTwo, Peer::Kind::kReplica);
  EXPECT_EQ(table_.FindLost(5, At(2)), nullptr);
  ASSERT_NE(table_.FindLost(5, At(3)), nullptr);
  EXPECT_EQ(table_.FindLost(5, At(3))->server, kOne);
  table_.SetDead({kTwo});
  EXPECT_EQ(table_.FindLost(5, At(3))->server, kTwo);
}

TEST_F(PeerTableTest, WhoOwesAcknowledgementsForTwoLeasesIsLost) {
  Peer& peer = Add(kOne, Peer::Kind::kReplica);
  peer.heard = At(10);
  EXPECT_FALSE(table_.IsLost(peer, 5, At(10)));  // it owes nothing
  EXPECT_FALSE(table_.IsLost(peer, 6, At(5)));
  EXPECT_TRUE(table_.IsLost(peer, 6, At(6)));
}

TEST_F(PeerTableTest, ALearnerIsAReplicaToDoWithoutOnlyWhereItWasProposed) {
  Peer& learner = Add(kOne, Peer::Kind::kJoint);
  EXPECT_EQ(table_.FindLost(5, At(3)), nullptr);
  learner.proposed = true;
  EXPECT_EQ(table_.FindLost(5, At(3)), &learner);
}

}  // namespace
}  // namespace adamant::parameter_server
