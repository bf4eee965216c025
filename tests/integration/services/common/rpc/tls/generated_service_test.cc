#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/frame.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/status_grpc.h"
#include "services/common/rpc/tls/certified_calls.h"
#include "services/common/rpc/tls/channel_security.h"
#include "tests/fakes/required_tls13.h"
#include "tests/unit/services/common/security/certified.h"

namespace adamant::rpc {
namespace {

using security::As;
using security::Certified;
using security::IdentityStore;
using security::Role;
using std::chrono::milliseconds;
using std::chrono::seconds;

using Messages = grpc::ServerReaderWriter<v1::ControllerMessage, v1::MemberMessage>;

// A controller that knows who calls: answers with their slot.
class Controller final : public v1::Controller::Service {
 public:
  explicit Controller(seconds grace) : calls_(grace) {}

  grpc::Status Attend(grpc::ServerContext* context, Messages* messages) override {
    const auto call = calls_.Enter(*context);
    if (!call.ok()) {
      return ToGrpc(call.status());
    }
    v1::MemberMessage message;
    while (messages->Read(&message)) {
      v1::ControllerMessage answer;
      answer.mutable_welcome()->set_incarnation(*call == nullptr ? 0
                                                                 : (*call)->client().identity.slot);
      messages->Write(answer);
    }
    return grpc::Status::OK;
  }

  grpc::Status GetTerm(grpc::ServerContext* context,
                       const v1::GetTermRequest* /*request*/,
                       v1::Term* reply) override {
    const auto call = calls_.Enter(*context);
    if (!call.ok()) {
      return ToGrpc(call.status());
    }
    reply->set_term(*call == nullptr ? 0 : (*call)->client().identity.slot);
    return grpc::Status::OK;
  }

 private:
  CertifiedCalls calls_;
};

class GeneratedServiceTest : public testing::Test {
 protected:
  void Start(const std::string& address = "127.0.0.1:0") {
    ServerSecurity security{.identity = Certified(authority_, As(Role::kOperator)),
                            .grace = seconds(1),
                            .on_refused = [this](const Refusal& refusal) {
                              const std::lock_guard lock(mutex_);
                              ++refusals_[std::string(refusal.method)];
                            }};
    auto server =
        StartServer({.address = address, .security = std::move(security)}, {&controller_}, {});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  void TearDown() override {
    if (server_ != nullptr) {
      server_->Stop();
    }
  }

  [[nodiscard]] std::unique_ptr<v1::Controller::Stub> StubOf(
      const ChannelSecurity* security) const {
    return v1::Controller::NewStub(NewChannel(server_->address(), 1 << 20, {}, security));
  }

  [[nodiscard]] static ChannelSecurity To(std::shared_ptr<const IdentityStore> identity) {
    return {.identity = std::move(identity), .peer = security::ExpectOperator("adamant.local")};
  }

  // The slot that the server knows.
  static absl::StatusOr<std::uint64_t> AskTerm(v1::Controller::Stub& stub) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(20));
    v1::Term term;
    const grpc::Status status = stub.GetTerm(&context, v1::GetTermRequest(), &term);
    return status.ok() ? absl::StatusOr<std::uint64_t>(term.term()) : FromGrpc(status);
  }

  std::map<std::string, int> refusals() {
    const std::lock_guard lock(mutex_);
    return refusals_;
  }

  security::CertificateAuthority authority_ = security::MakeAuthority();
  Controller controller_{seconds(1)};
  std::mutex mutex_;
  std::map<std::string, int> refusals_;
  std::unique_ptr<Server> server_;
};

TEST_F(GeneratedServiceTest, AMemberIsKnown) {
  Start();
  const ChannelSecurity security = To(Certified(authority_, As(Role::kWorker, 7)));
  EXPECT_EQ(AskTerm(*StubOf(&security)).value(), 7);
  EXPECT_TRUE(refusals().empty());
}

TEST_F(GeneratedServiceTest, PlainTextIsRefused) {
  Start();
  EXPECT_TRUE(absl::IsUnavailable(AskTerm(*StubOf(nullptr)).status()));
}

TEST_F(GeneratedServiceTest, AnotherRoleIsRefusedAndCounted) {
  Start();
  const ChannelSecurity security = To(Certified(authority_, As(Role::kExporter)));
  EXPECT_TRUE(absl::IsPermissionDenied(AskTerm(*StubOf(&security)).status()));
  const std::map<std::string, int> expected = {{"/adamant.v1.Controller/GetTerm", 1}};
  EXPECT_EQ(refusals(), expected);
}

TEST_F(GeneratedServiceTest, AStreamEndsAWhileAfterItsCertificate) {
  Start();
  const auto worker = Certified(authority_, As(Role::kWorker, 7), {.life = seconds(3)});
  const ChannelSecurity security = To(worker);
  const auto stub = StubOf(&security);
  grpc::ClientContext context;
  const auto stream = stub->Attend(&context);
  v1::ControllerMessage answer;
  ASSERT_TRUE(stream->Write(v1::MemberMessage()));
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.welcome().incarnation(), 7);
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_FALSE(stream->Finish().ok());
  const auto end = worker->Get()->content.not_after + seconds(1);
  EXPECT_GE(std::chrono::system_clock::now(), end);
  EXPECT_LT(std::chrono::system_clock::now(), end + seconds(10));
  EXPECT_TRUE(absl::IsUnauthenticated(AskTerm(*stub).status()));  // on the same connection
}

TEST_F(GeneratedServiceTest, AUnixSocketStaysPlain) {
  std::string folder = (std::filesystem::temp_directory_path() / "adamant-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  Start("unix:" + folder + "/s");
  EXPECT_EQ(AskTerm(*StubOf(nullptr)).value(), 0);
  const ChannelSecurity security = To(Certified(authority_, As(Role::kWorker, 7)));
  EXPECT_EQ(AskTerm(*StubOf(&security)).value(), 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace adamant::rpc
