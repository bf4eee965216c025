#include "services/parameter_server/rpc/peers/deliver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "proto/adamant/v1/replication.pb.h"
#include "services/parameter_server/rpc/messages/message_batch.h"
#include "tests/fakes/certified_stream.h"
#include "tests/fakes/in_memory_frame_stream.h"
#include "tests/unit/services/common/security/certified.h"
#include "tests/unit/services/parameter_server/rpc/lone_server.h"

namespace adamant::parameter_server {
namespace {

using ::testing::HasSubstr;

constexpr ServerId kSelf{.slot = 2, .incarnation = 5};
constexpr ServerId kPeer{.slot = 1, .incarnation = 3};
constexpr std::uint64_t kJob = 7;

v1::ReplicationHello GoodHello() {
  v1::ReplicationHello hello;
  hello.set_format_version(1);
  hello.set_job_uid(kJob);
  hello.mutable_from()->set_slot(kPeer.slot);
  hello.mutable_from()->set_incarnation(kPeer.incarnation);
  hello.mutable_to()->set_slot(kSelf.slot);
  hello.mutable_to()->set_incarnation(kSelf.incarnation);
  return hello;
}

class DeliverTest : public testing::Test {
 protected:
  DeliverTest() { gate_.Open(server_.core()); }

  /// Runs the handler and says hello; returns why it was refused.
  std::string Greet(const v1::ReplicationHello& hello) {
    ended_ = std::async(std::launch::async,
                        [this] { return ServeDeliver(gate_, members_, metrics_, *peer_end_); });
    EXPECT_TRUE(stream_->Write({.header = hello.SerializeAsString(), .payload = {}}).ok());
    const auto answer = stream_->Read();
    EXPECT_TRUE(answer.ok()) << answer.status();
    v1::ReplicationHelloReply reply;
    EXPECT_TRUE(reply.ParseFromString(std::string(answer->header())));
    return reply.refused();
  }

  absl::Status Send(const PeerMessage& message) {
    return stream_->Write(EncodeMessageBatch(std::vector<PeerMessage>{message}));
  }

  /// How the handler returned, once the peer has said all.
  absl::Status End() {
    stream_->CloseWrites();
    return ended_.get();
  }

  LoneServer server_{{.job_uid = kJob, .self = kSelf}};
  CoreGate gate_;
  service::MemberGenerations members_;
  metrics::Registry registry_;
  const PeerMetrics metrics_{registry_};
  fakes::InMemoryLink link_;
  std::unique_ptr<rpc::FrameStream> peer_end_ = link_.TakeServer();
  std::unique_ptr<rpc::FrameStream> stream_ = link_.TakeClient();
  std::future<absl::Status> ended_;
};

TEST_F(DeliverTest, MessagesReachTheCore) {
  EXPECT_EQ(Greet(GoodHello()), "");
  const Beacon beacon{.generation = 1, .primary = kPeer, .replicas = {kPeer}};
  EXPECT_TRUE(Send({.configuration_version = 2, .kind = beacon}).ok());
  EXPECT_TRUE(End().ok());
  EXPECT_TRUE(server_.core().Progress().empty()) << "another one is primary since";
  EXPECT_THAT(
      registry_.Text(),
      HasSubstr("adamant_parameter_server_peer_received_messages_total{kind=\"beacon\"} 1"));
}

TEST_F(DeliverTest, AnotherFormatVersionIsRefusedNamingBoth) {
  v1::ReplicationHello hello = GoodHello();
  hello.set_format_version(9);
  const std::string refused = Greet(hello);
  EXPECT_THAT(refused, HasSubstr("version 1"));
  EXPECT_THAT(refused, HasSubstr("version 9"));
  EXPECT_TRUE(ended_.get().ok());
}

TEST_F(DeliverTest, AnotherJobIsRefusedAndNotToldWhichOneIsRight) {
  v1::ReplicationHello hello = GoodHello();
  hello.set_job_uid(8);
  EXPECT_EQ(Greet(hello), "this server is not of its peer's job, 8");
}

TEST_F(DeliverTest, APeerThatWantsAnotherSlotIsRefused) {
  v1::ReplicationHello hello = GoodHello();
  hello.mutable_to()->set_slot(0);
  EXPECT_THAT(Greet(hello), HasSubstr("not parameter server 0"));
}

TEST_F(DeliverTest, APeerThatWantsAnotherIncarnationIsRefused) {
  v1::ReplicationHello hello = GoodHello();
  hello.mutable_to()->set_incarnation(4);
  EXPECT_THAT(Greet(hello), HasSubstr("incarnation 4"));
}

TEST_F(DeliverTest, APeerOfTheSameSlotIsRefused) {
  v1::ReplicationHello hello = GoodHello();
  hello.mutable_from()->set_slot(kSelf.slot);
  EXPECT_THAT(Greet(hello), HasSubstr("same slot"));
}

TEST_F(DeliverTest, AMessageBatchThatDoesNotFitEndsTheStream) {
  EXPECT_EQ(Greet(GoodHello()), "");
  EXPECT_TRUE(Send({.bucket = 9, .configuration_version = 1, .kind = Released{}}).ok());
  EXPECT_EQ(End().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DeliverTest, AServerThatStopsIsUnavailable) {
  EXPECT_EQ(Greet(GoodHello()), "");
  gate_.Close();
  EXPECT_TRUE(Send({.configuration_version = 1, .kind = Released{}}).ok());
  EXPECT_EQ(End().code(), absl::StatusCode::kUnavailable);
}

TEST_F(DeliverTest, APeerIsTheOneOfItsCertificate) {
  const auto greet_as = [this](const security::PeerIdentity& peer) {
    fakes::InMemoryLink link;
    const auto client = link.TakeClient();
    fakes::CertifiedStream stream(link.TakeServer(), peer);
    EXPECT_TRUE(client->Write({.header = GoodHello().SerializeAsString(), .payload = {}}).ok());
    client->CloseWrites();
    return ServeDeliver(gate_, members_, metrics_, stream);
  };
  security::PeerIdentity peer = security::As(security::Role::kParameterServer, kPeer.slot);
  EXPECT_TRUE(absl::IsUnavailable(greet_as(peer)));  // the controller has not told of it yet
  members_.Set({.role = peer.role,
                .slot = peer.slot,
                .incarnation = kPeer.incarnation,
                .generation = peer.generation});
  EXPECT_TRUE(greet_as(peer).ok());
  --peer.generation;  // its predecessor, which lives
  EXPECT_TRUE(absl::IsPermissionDenied(greet_as(peer)));
  peer = security::As(security::Role::kParameterServer, kPeer.slot + 2);
  EXPECT_TRUE(absl::IsPermissionDenied(greet_as(peer)));
}

}  // namespace
}  // namespace adamant::parameter_server
