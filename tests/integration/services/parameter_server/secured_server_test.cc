// What the processes of a job ask a parameter server for, with TLS between them.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/metrics/metrics.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/tls/member_security.h"
#include "services/data_server/rpc/record_client.h"
#include "services/parameter_server/rpc/peers/deliver.h"
#include "services/parameter_server/rpc/peers/peers.h"
#include "services/parameter_server/rpc/record_methods.h"
#include "services/parameter_server/rpc/workers/exchange.h"
#include "services/worker/rpc/link.h"
#include "tests/fakes/becomes.h"
#include "tests/fakes/required_tls13.h"
#include "tests/unit/services/common/security/certified.h"
#include "tests/unit/services/parameter_server/rpc/lone_server.h"

namespace adamant::parameter_server {
namespace {

using fakes::Becomes;
using security::As;
using security::Certified;
using security::Role;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kJob = 7;
constexpr ServerId kSelf{.slot = 2, .incarnation = 5};
constexpr ServerId kPeer{.slot = 1, .incarnation = 3};

class SecuredServerTest : public testing::Test {
 protected:
  void SetUp() override {
    gate_.Open(core_.core());
    Joins(Role::kParameterServer, kPeer.slot, kPeer.incarnation, security::kWorker.generation);
    auto server = rpc::StartServer(
        {.is_own_job = [](std::string_view job) { return job == std::to_string(kJob); },
         .security =
             rpc::ServerSecurity{.identity = identity_,
                                 .on_refused = [this](const rpc::Refusal&) { ++refused_; }}},
        {},
        {{.name = "/adamant.v1.ParameterServer/Exchange",
          .handler =
              [this](rpc::FrameStream& stream) {
                return ServeExchange(gate_, members_, traffic_, stream);
              },
          .job_of = JobOfExchange},
         {.name = kDeliverMethod,
          .handler =
              [this](rpc::FrameStream& stream) {
                return ServeDeliver(gate_, members_, peers_, stream);
              },
          .job_of = JobOfDeliver}},
        RecordMethods(gate_, members_, [](std::uint32_t part) { return std::optional(part); }));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  void TearDown() override {
    server_->Stop();
    gate_.Close();
  }

  [[nodiscard]] rpc::MemberSecurity As(Role role, std::uint32_t slot) const {
    return rpc::MemberSecurity(Certified(authority_, security::As(role, slot)));
  }

  // The controller says who a member is.
  void Joins(Role role, std::uint32_t slot, Incarnation incarnation, std::uint64_t generation) {
    members_.Set(
        {.role = role, .slot = slot, .incarnation = incarnation, .generation = generation});
  }

  // Connects as the process of worker 0 that has joined as `incarnation`, and tells `on_change`
  // whether it was let in.
  std::unique_ptr<worker::Link> WorkerConnects(const security::PeerIdentity& identity,
                                               Incarnation incarnation,
                                               std::function<void(bool)> on_change) {
    v1::ExchangeRequest request;
    request.mutable_hello()->set_format_version(1);
    request.mutable_hello()->set_job_uid(kJob);
    request.mutable_hello()->set_worker_slot(0);
    request.mutable_hello()->set_worker_incarnation(incarnation);
    worker::LinkHandlers handlers;
    handlers.on_hello = [](const rpc::IncomingFrame& frame) -> absl::Status {
      v1::ExchangeReply reply;
      const bool is_reply =
          reply.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()));
      return is_reply && reply.hello().refused().empty() ? absl::OkStatus()
                                                         : absl::InternalError("refused");
    };
    handlers.on_change = std::move(on_change);
    handlers.on_frame = [](rpc::IncomingFrame) { return absl::OkStatus(); };
    const rpc::MemberSecurity security(Certified(authority_, identity));
    return std::make_unique<worker::Link>(
        worker::LinkOptions{.address = server_->address(),
                            .method = "/adamant.v1.ParameterServer/Exchange",
                            .job = std::to_string(kJob),
                            .security = security.To(Role::kParameterServer, kSelf.slot),
                            .max_message_bytes = 1 << 20,
                            .hello = request.SerializeAsString()},
        std::move(handlers));
  }

  // Whether kPeer gets its ways to the server opened that it takes for `to`.
  bool PeerConnects(const rpc::MemberSecurity& security,
                    const ServerId& to,
                    milliseconds wait = seconds(20)) {
    std::atomic<bool> connected = false;
    Peers peers({.job_uid = kJob,
                 .self = kPeer,
                 .security = security,
                 .on_connected = [&](const ServerId&) { connected = true; }},
                peers_);
    peers.Set({{to, server_->address()}});
    const auto end = std::chrono::steady_clock::now() + wait;
    while (!connected && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    peers.Stop();
    return connected;
  }

  metrics::Registry registry_;
  const TrafficMetrics traffic_{registry_};
  const PeerMetrics peers_{registry_};
  const data_server::DataMetrics data_{registry_};
  LoneServer core_{{.job_uid = kJob, .self = kSelf}};
  CoreGate gate_;
  service::MemberGenerations members_;
  const security::CertificateAuthority authority_ = security::MakeAuthority();
  const std::shared_ptr<security::IdentityStore> identity_ =
      Certified(authority_, security::As(Role::kParameterServer, kSelf.slot));
  std::atomic<int> refused_ = 0;
  std::unique_ptr<rpc::Server> server_;
};

TEST_F(SecuredServerTest, PeersConnect) {
  EXPECT_TRUE(PeerConnects(As(Role::kParameterServer, kPeer.slot), kSelf));
  EXPECT_EQ(refused_, 0);
}

TEST_F(SecuredServerTest, PeersOfAnotherSlotRoleOrWithoutTlsDoNot) {
  constexpr milliseconds kShort(500);
  EXPECT_FALSE(PeerConnects(As(Role::kParameterServer, kPeer.slot + 2), kSelf, kShort));
  EXPECT_EQ(refused_, 0);  // not before it says hello
  EXPECT_FALSE(PeerConnects(As(Role::kWorker, kPeer.slot), kSelf, kShort));
  EXPECT_GT(refused_, 0);
  EXPECT_FALSE(PeerConnects(rpc::MemberSecurity(), kSelf, kShort));
}

TEST_F(SecuredServerTest, PeersTalkToNobodyElseThanTheyMean) {
  const ServerId other{.slot = kSelf.slot + 1, .incarnation = kSelf.incarnation};
  EXPECT_FALSE(PeerConnects(As(Role::kParameterServer, kPeer.slot), other, milliseconds(500)));
}

TEST_F(SecuredServerTest, AWorkerConnectsOnceItIsKnown) {
  std::atomic<bool> connected = false;
  const auto link = WorkerConnects(
      security::As(Role::kWorker), 1, [&](bool is_connected) { connected = is_connected; });
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_FALSE(connected);
  Joins(Role::kWorker, 0, 1, security::kWorker.generation);
  EXPECT_TRUE(Becomes([&] { return connected.load(); }));
}

TEST_F(SecuredServerTest, AWorkerThatWasReplacedDoesNotConnectAsItsSuccessor) {
  Joins(Role::kWorker, 0, 2, security::kWorker.generation + 1);
  std::atomic<bool> connected = false;
  const auto link = WorkerConnects(security::As(Role::kWorker), 2, [&](bool is_connected) {
    connected = connected || is_connected;
  });
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_FALSE(connected);
}

TEST_F(SecuredServerTest, ADataServerReadsRecordsAlsoAfterItsCertificateWasRenewed) {
  const auto own = security::As(Role::kDataServer, 0);
  const auto identity = Certified(authority_, own);
  std::atomic<int> answers = 0;
  data_server::RecordClient records(
      {.job = {.job_uid = kJob}, .security = rpc::MemberSecurity(identity)},
      {.on_answer = [&](data_server::Input) { ++answers; },
       .on_failure = [](const absl::Status& status) { ADD_FAILURE() << status; }},
      data_);
  records.SetMap({server_->address()});
  records.Submit(data_server::ReadRecord{.request = 1, .part = 0});
  EXPECT_TRUE(Becomes([&] { return answers == 1; }));
  security::Renew(*identity, authority_, own);
  records.Submit(data_server::ReadRecord{.request = 2, .part = 1});
  EXPECT_TRUE(Becomes([&] { return answers == 2; }));
}

}  // namespace
}  // namespace adamant::parameter_server
