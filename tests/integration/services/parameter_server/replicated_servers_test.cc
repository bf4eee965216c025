// Three real parameter servers that replicate over loopback; the test is their controller.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/replication.pb.h"
#include "services/common/rpc/frame.h"
#include "tests/integration/services/parameter_server/server_process.h"

namespace adamant::parameter_server {
namespace {

constexpr std::uint32_t kServers = 3;
constexpr std::uint32_t kBuckets = ServerProcess::kBuckets;

bool Same(const v1::ServerId& a, const v1::ServerId& b) {
  return a.slot() == b.slot() && a.incarnation() == b.incarnation();
}

class ReplicatedServersTest : public testing::Test {
 protected:
  /// Server 0 creates the buckets; the others learn them and become members.
  void SetUp() override {
    for (ServerProcess& server : servers_) {
      server.Start(kServers);
      *map_.add_members() = server.member();
    }
    for (BucketId bucket = 0; bucket < kBuckets; ++bucket) {
      v1::Configuration& record = *map_.add_buckets();
      record.set_epoch(1);
      record.set_generation(1);
      *record.mutable_primary() = servers_[0].server();
      *record.add_members() = servers_[0].server();
    }
    Publish();
    AwaitServing(servers_[0]);
    for (std::uint32_t slot = 1; slot < kServers; ++slot) {
      for (v1::Configuration& record : *map_.mutable_buckets()) {
        record.set_created(true);
        *record.mutable_learner() = servers_[slot].server();
      }
      Publish();
      ApplyProposals(servers_[0], v1::Proposal::ADD);
    }
    servers_[0].Connect();
  }

  /// Everybody who lives hears the records.
  void Publish() {
    map_.set_version(map_.version() + 1);
    for (ServerProcess& server : servers_) {
      if (alive_[server.server().slot()]) {
        server.Send(map_);
      }
    }
  }

  /// The proposals in the next message; notes what the server says that it serves.
  v1::Proposals Hear(ServerProcess& server) {
    const v1::MemberMessage message = server.Receive();
    for (const v1::BucketState& state : message.buckets_ready().buckets()) {
      EXPECT_FALSE(state.lost()) << state.detail();
      serving_[{server.server().slot(), state.bucket()}] = state.epoch();
    }
    return message.proposals();
  }

  /// Waits until `server` serves all buckets under their configurations.
  void AwaitServing(ServerProcess& server) {
    for (BucketId bucket = 0; bucket < kBuckets; ++bucket) {
      while (serving_[{server.server().slot(), bucket}] < EpochOf(bucket)) {
        Hear(server);
      }
    }
  }

  /// Waits until `server` has proposed this for every bucket, and does it.
  void ApplyProposals(ServerProcess& server, v1::Proposal::Kind kind) {
    for (std::uint32_t applied = 0; applied < kBuckets;) {
      const v1::Proposals heard = Hear(server);
      for (const v1::Proposal& proposal : heard.proposals()) {
        v1::Configuration& record = *map_.mutable_buckets(static_cast<int>(proposal.bucket()));
        if (proposal.kind() == kind && proposal.epoch() == record.epoch()) {
          Apply(proposal, record);
          ++applied;
        }
      }
      Publish();
    }
  }

  [[nodiscard]] std::uint64_t EpochOf(BucketId bucket) const {
    return map_.buckets(static_cast<int>(bucket)).epoch();
  }

  static void Apply(const v1::Proposal& proposal, v1::Configuration& record) {
    record.set_epoch(record.epoch() + 1);
    if (proposal.kind() == v1::Proposal::ADD) {
      *record.add_members() = proposal.subject();
      record.clear_learner();
      return;
    }
    const bool take_over = proposal.kind() == v1::Proposal::PROMOTE;
    const v1::ServerId leaves = take_over ? record.primary() : proposal.subject();
    if (take_over) {
      *record.mutable_primary() = proposal.proposer();
      record.clear_heir();
    }
    for (int i = 0; i < record.members_size() && !proposal.released(); ++i) {
      if (Same(record.members(i), leaves)) {
        record.mutable_members()->DeleteSubrange(i, 1);
      }
    }
  }

  v1::Membership map_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> serving_;  // (slot, bucket)
  std::array<bool, kServers> alive_ = {true, true, true};
  std::array<ServerProcess, kServers> servers_ = {
      ServerProcess(0), ServerProcess(1), ServerProcess(2)};
};

TEST_F(ReplicatedServersTest, WhatWasAcknowledgedSurvivesThePrimary) {
  for (Sequence sequence = 1; sequence <= 5; ++sequence) {
    ASSERT_EQ(servers_[0].Push(sequence).outcome(), v1::ShardAck::APPLIED);
  }
  const auto before = servers_[0].Fetch();
  EXPECT_EQ(before.header.version(), 5u);
  EXPECT_EQ(servers_[0].Signal(SIGKILL), -SIGKILL);
  alive_[0] = false;
  *map_.add_dead() = servers_[0].server();
  Publish();
  ApplyProposals(servers_[1], v1::Proposal::PROMOTE);
  AwaitServing(servers_[1]);

  servers_[1].Connect();
  const auto after = servers_[1].Fetch();
  EXPECT_EQ(after.header.outcome(), v1::ShardValue::FOUND);
  EXPECT_EQ(after.header.version(), 5u);
  EXPECT_EQ(after.header.included_sequence(), 5u);
  EXPECT_EQ(after.values, before.values);
  EXPECT_EQ(servers_[1].Push(5, EpochOf(0)).outcome(), v1::ShardAck::DUPLICATE);
  EXPECT_EQ(servers_[1].Push(6, EpochOf(0)).outcome(), v1::ShardAck::APPLIED);
}

TEST_F(ReplicatedServersTest, SigtermHandsThePrimariesOver) {
  ASSERT_EQ(servers_[0].Push(1).outcome(), v1::ShardAck::APPLIED);
  const auto before = servers_[0].Fetch();
  servers_[0].SendSignal(SIGTERM);
  while (!servers_[0].Receive().has_draining()) {
  }
  for (v1::Configuration& record : *map_.mutable_buckets()) {
    *record.mutable_heir() = servers_[2].server();
  }
  Publish();
  ApplyProposals(servers_[2], v1::Proposal::PROMOTE);
  while (!servers_[0].Receive().has_leaving()) {
  }
  EXPECT_EQ(servers_[0].WaitForExit(), 0);
  alive_[0] = false;
  *map_.add_dead() = servers_[0].server();
  Publish();
  ApplyProposals(servers_[2], v1::Proposal::DROP);
  servers_[2].Connect();
  const auto after = servers_[2].Fetch();
  EXPECT_EQ(after.header.version(), 1u);
  EXPECT_EQ(after.values, before.values);
}

TEST_F(ReplicatedServersTest, AMemberThatIsSilentIsDroppedAndTheRestGoesOn) {
  servers_[2].SendSignal(SIGSTOP);
  ApplyProposals(servers_[0], v1::Proposal::DROP);
  EXPECT_EQ(map_.buckets(0).members_size(), 2);
  EXPECT_EQ(servers_[0].Push(1, EpochOf(0)).outcome(), v1::ShardAck::APPLIED);
  servers_[2].SendSignal(SIGCONT);
}

// What `server` says against a peer's hello; `job`: that the stream names before it.
std::string Refusal(const ServerProcess& server,
                    const v1::ReplicationHello& hello,
                    const std::string& job) {
  const auto stream = rpc::OpenFrameStream(
      server.replication_address(), "/adamant.v1.Replication/Deliver", 1 << 20, {}, job);
  EXPECT_TRUE(stream->Write({.header = hello.SerializeAsString(), .payload = {}}).ok());
  const auto answer = stream->Read();
  EXPECT_TRUE(answer.ok()) << answer.status();
  v1::ReplicationHelloReply reply;
  EXPECT_TRUE(answer.ok() && reply.ParseFromString(std::string(answer->header())));
  return reply.refused();
}

TEST_F(ReplicatedServersTest, APeerThatTakesItForAnotherProcessIsRefused) {
  v1::ReplicationHello hello;
  hello.set_format_version(1);
  hello.set_job_uid(ServerProcess::kJobUid);
  *hello.mutable_from() = servers_[0].server();
  *hello.mutable_to() = servers_[1].server();
  hello.mutable_to()->set_incarnation(9);
  const std::string refused = Refusal(servers_[1], hello, std::to_string(ServerProcess::kJobUid));
  EXPECT_NE(refused.find("incarnation 9"), std::string::npos) << refused;
  EXPECT_EQ(Refusal(servers_[1], hello, ""), refused) << "a peer of an earlier state is heard";
}

}  // namespace
}  // namespace adamant::parameter_server
