#include "services/parameter_server/rpc/controller/control_messages.h"

#include <gtest/gtest.h>

#include "proto/adamant/v1/control.pb.h"

namespace adamant::parameter_server {
namespace {

constexpr Holder kSelf{.slot = 0, .incarnation = 1};
constexpr Holder kPeer{.slot = 1, .incarnation = 1};

void SetHolder(const Holder& holder, v1::Holder& out) {
  out.set_slot(holder.slot);
  out.set_incarnation(holder.incarnation);
}

void AddServer(v1::Membership& membership, const Holder& holder, const std::string& address) {
  v1::Member& member = *membership.add_members();
  member.set_role(v1::PARAMETER_SERVER);
  member.set_slot(holder.slot);
  member.set_incarnation(holder.incarnation);
  member.set_replication_address(address);
}

void AddBucket(v1::Membership& membership, const std::vector<Holder>& members) {
  v1::Bucket& bucket = *membership.add_buckets();
  SetHolder(members.front(), *bucket.mutable_primary());
  for (const Holder& member : members) {
    SetHolder(member, *bucket.add_members());
  }
}

TEST(PeersOfTest, AllOtherParameterServersThatAreListed) {
  v1::Membership membership;
  AddServer(membership, kSelf, "a:1");
  AddServer(membership, kPeer, "b:1");
  v1::Member& worker = *membership.add_members();
  worker.set_role(v1::WORKER);
  worker.set_slot(2);
  EXPECT_EQ(PeersOf(membership, kSelf, {}), (PeerAddresses{{kPeer, "b:1"}}));
}

TEST(PeersOfTest, OneThatIsSilentStaysWhileARecordNamesIt) {
  v1::Membership membership;
  const PeerAddresses known = {{kPeer, "b:1"}};
  EXPECT_TRUE(PeersOf(membership, kSelf, known).empty());
  AddBucket(membership, {kSelf, kPeer});
  EXPECT_EQ(PeersOf(membership, kSelf, known), known);
}

TEST(PeersOfTest, OneThatIsDeadOrReplacedGoes) {
  const PeerAddresses known = {{kPeer, "b:1"}};
  v1::Membership dead;
  AddBucket(dead, {kSelf, kPeer});
  SetHolder(kPeer, *dead.add_dead());
  EXPECT_TRUE(PeersOf(dead, kSelf, known).empty());
  v1::Membership replaced;
  AddBucket(replaced, {kSelf, kPeer});
  const Holder next{.slot = kPeer.slot, .incarnation = 2};
  AddServer(replaced, next, "b:2");
  EXPECT_EQ(PeersOf(replaced, kSelf, known), (PeerAddresses{{next, "b:2"}}));
}

TEST(ControlMessagesTest, RecordsArriveWhole) {
  v1::Membership membership;
  AddBucket(membership, {kPeer, kSelf});
  v1::Bucket& bucket = *membership.mutable_buckets(0);
  bucket.set_epoch(5);
  bucket.set_generation(2);
  bucket.set_created(true);
  bucket.set_restored_snapshot(9);
  SetHolder({4, 4}, *bucket.mutable_learner());
  SetHolder(kSelf, *bucket.mutable_heir());
  SetHolder({6, 6}, *membership.add_dead());
  const auto configurations = ConfigurationsOf(membership);
  ASSERT_EQ(configurations.size(), 1u);
  EXPECT_EQ(configurations[0].epoch, 5u);
  EXPECT_EQ(configurations[0].generation, 2u);
  EXPECT_TRUE(configurations[0].created);
  EXPECT_EQ(configurations[0].restored_snapshot, 9u);
  EXPECT_EQ(configurations[0].primary, kPeer);
  EXPECT_EQ(configurations[0].members, (std::vector<Holder>{kPeer, kSelf}));
  EXPECT_EQ(configurations[0].learner, (Holder{4, 4}));
  EXPECT_EQ(configurations[0].heir, kSelf);
  EXPECT_FALSE(configurations[0].leaver.has_value());
  EXPECT_EQ(DeadOf(membership), (std::vector<Holder>{{6, 6}}));
}

TEST(ControlMessagesTest, ProposalsAndReportsAreWrittenWhole) {
  v1::Proposals proposals;
  EncodeProposals(std::vector<Proposal>{{.bucket = 3,
                                         .epoch = 4,
                                         .kind = Proposal::Kind::kDrop,
                                         .proposer = kSelf,
                                         .subject = kPeer,
                                         .last_lsn = 5,
                                         .released = true}},
                  proposals);
  const v1::Proposal& proposal = proposals.proposals(0);
  EXPECT_EQ(proposal.kind(), v1::Proposal::DROP);
  EXPECT_EQ(proposal.subject().slot(), kPeer.slot);
  EXPECT_EQ(proposal.last_lsn(), 5u);
  EXPECT_TRUE(proposal.released());

  v1::BucketsReady ready;
  EncodeReports(
      std::vector<BucketReport>{
          {.bucket = 1, .epoch = 2},
          {.bucket = 2, .epoch = 3, .failover = {.detect = std::chrono::milliseconds(1500)}}},
      ready);
  EXPECT_FALSE(ready.buckets(0).has_failover());
  EXPECT_EQ(ready.buckets(1).failover().detect_seconds(), 1.5);
}

}  // namespace
}  // namespace adamant::parameter_server
