#include "services/parameter_server/rpc/controller/peer_addresses.h"

#include <gtest/gtest.h>

namespace adamant::parameter_server {
namespace {

constexpr ServerId kSelf{.slot = 0, .incarnation = 1};
constexpr ServerId kPeer{.slot = 1, .incarnation = 1};

protocol::Member Server(const ServerId& server, const std::string& address) {
  return {.id = {.role = protocol::Role::kParameterServer, .slot = server.slot},
          .incarnation = server.incarnation,
          .replication_address = address};
}

protocol::Membership WithBucket(const std::vector<ServerId>& members) {
  return {.buckets = {{.primary = members.front(), .replicas = members}}};
}

TEST(PeersOfTest, AllOtherParameterServersThatAreListed) {
  const protocol::Membership membership{
      .members = {Server(kSelf, "a:1"),
                  Server(kPeer, "b:1"),
                  {.id = {.role = protocol::Role::kWorker, .slot = 2}}}};
  EXPECT_EQ(PeersOf(membership, kSelf, {}), (PeerAddresses{{kPeer, "b:1"}}));
}

TEST(PeersOfTest, OneThatIsSilentStaysWhileARecordNamesIt) {
  const PeerAddresses known = {{kPeer, "b:1"}};
  EXPECT_TRUE(PeersOf({}, kSelf, known).empty());
  EXPECT_EQ(PeersOf(WithBucket({kSelf, kPeer}), kSelf, known), known);
}

TEST(PeersOfTest, OneThatIsToLearnABucketStays) {
  const PeerAddresses known = {{kPeer, "b:1"}};
  protocol::Membership membership = WithBucket({kSelf});
  membership.buckets[0].learner = kPeer;
  EXPECT_EQ(PeersOf(membership, kSelf, known), known);
}

TEST(PeersOfTest, OneThatIsDeadOrReplacedGoes) {
  const PeerAddresses known = {{kPeer, "b:1"}};
  protocol::Membership dead = WithBucket({kSelf, kPeer});
  dead.dead = {kPeer};
  EXPECT_TRUE(PeersOf(dead, kSelf, known).empty());
  protocol::Membership replaced = WithBucket({kSelf, kPeer});
  const ServerId next{.slot = kPeer.slot, .incarnation = 2};
  replaced.members = {Server(next, "b:2")};
  EXPECT_EQ(PeersOf(replaced, kSelf, known), (PeerAddresses{{next, "b:2"}}));
}

}  // namespace
}  // namespace adamant::parameter_server
