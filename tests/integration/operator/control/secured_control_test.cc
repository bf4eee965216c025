#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "operator/control/control_server.h"
#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/tls/channel_security.h"
#include "tests/fakes/required_tls13.h"
#include "tests/unit/services/common/security/certified.h"

// A control server that serves jobs with and without TLS.
namespace adamant::control {
namespace {

using security::As;
using security::Certified;
using security::kWorker;
using security::Role;

constexpr char kPlainJob[] = "plain-job";

class SecuredControlTest : public testing::Test {
 protected:
  SecuredControlTest() : server_(*StartControlServer("127.0.0.1:0")) {
    const absl::Status listens =
        server_->Listen({.address = "127.0.0.1:0",
                         .security = {.identity = Certified(authority_, As(Role::kOperator)),
                                      .grace = std::chrono::seconds(0)},
                         .on_mismatch = [this](Mismatch mismatch) { Count(mismatch); }});
    EXPECT_TRUE(listens.ok()) << listens;
    const auto sink = [this](const controller::Event& event) {
      const MutexLock lock(mutex_);
      joined_ += std::holds_alternative<controller::Received>(event) ? 1 : 0;
      heard_.NotifyAll();
    };
    server_->AddJob(kWorker.job_uid, StreamSecurity::kTls, {}, "/data", sink);
    server_->AddJob(kPlainJob, StreamSecurity::kPlain, {}, "/data", sink);
  }
  ~SecuredControlTest() override { server_->Stop(); }

  // Whom kWorker's certificate is of.
  static v1::Join JoinOfWorker() {
    v1::Join join;
    join.set_role(v1::WORKER);
    join.set_slot(kWorker.slot);
    join.set_generation(kWorker.generation);
    join.set_job(kWorker.job_uid);
    return join;
  }

  [[nodiscard]] std::shared_ptr<grpc::Channel> Secured(const security::PeerIdentity& as,
                                                       const security::Making& making = {}) const {
    const rpc::ChannelSecurity security{.identity = Certified(authority_, as, making),
                                        .peer = security::ExpectOperator("adamant.local")};
    return rpc::NewChannel(server_->secured_address(), 1 << 20, {}, &security);
  }
  [[nodiscard]] std::shared_ptr<grpc::Channel> Plain() const {
    return rpc::NewChannel(server_->address(), 1 << 20);
  }

  // Whether who comes so is let in; else why not.
  std::string WhyNot(const std::shared_ptr<grpc::Channel>& channel, const v1::Join& join) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    const auto stub = v1::Controller::NewStub(channel);
    const auto stream = stub->Attend(&context);
    v1::MemberMessage message;
    *message.mutable_join() = join;
    stream->Write(message);
    if (IsHeard()) {
      context.TryCancel();
      stream->Finish();
      return "";
    }
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
    return status.error_message();
  }

  static grpc::Status TermOf(const std::shared_ptr<grpc::Channel>& channel) {
    v1::GetTermRequest request;
    request.set_job(kWorker.job_uid);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::Term term;
    return v1::Controller::NewStub(channel)->GetTerm(&context, request, &term);
  }

  int CountOf(Mismatch mismatch) {
    const MutexLock lock(mutex_);
    return mismatches_[mismatch];
  }

 private:
  // Whether somebody has joined, within half a second.
  bool IsHeard() {
    const MutexLock lock(mutex_);
    const int before = taken_;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (joined_ == before && std::chrono::steady_clock::now() < end) {
      heard_.WaitFor(mutex_, std::chrono::milliseconds(50));
    }
    taken_ = joined_;
    return taken_ > before;
  }

  void Count(Mismatch mismatch) {
    const MutexLock lock(mutex_);
    ++mismatches_[mismatch];
  }

  const security::CertificateAuthority authority_ = security::MakeAuthority();
  Mutex mutex_;
  CondVar heard_;
  int joined_ ABSL_GUARDED_BY(mutex_) = 0;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Mismatch, int> mismatches_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<ControlServer> server_;
};

TEST_F(SecuredControlTest, WhoIsWhoTheySayAreLetIn) {
  EXPECT_EQ(WhyNot(Secured(kWorker), JoinOfWorker()), "");
  v1::Join plain = JoinOfWorker();
  plain.set_job(kPlainJob);
  EXPECT_EQ(WhyNot(Plain(), plain), "");
}

TEST_F(SecuredControlTest, JoinMustSayWhatTheCertificateDoes) {
  v1::Join join = JoinOfWorker();
  join.set_slot(kWorker.slot + 1);
  EXPECT_THAT(WhyNot(Secured(kWorker), join), testing::HasSubstr("slot"));
  join = JoinOfWorker();
  join.set_generation(kWorker.generation + 1);
  EXPECT_THAT(WhyNot(Secured(kWorker), join), testing::HasSubstr("generation"));
  join = JoinOfWorker();
  join.set_role(v1::PARAMETER_SERVER);
  EXPECT_THAT(WhyNot(Secured(kWorker), join), testing::HasSubstr("role"));
  security::PeerIdentity other = kWorker;
  other.job_uid = "of-another-job";
  EXPECT_THAT(WhyNot(Secured(other), JoinOfWorker()), testing::HasSubstr("another job"));
  EXPECT_EQ(CountOf(Mismatch::kSlot), 1);
  EXPECT_EQ(CountOf(Mismatch::kGeneration), 1);
  EXPECT_EQ(CountOf(Mismatch::kRole), 1);
}

TEST_F(SecuredControlTest, EachJobHasItsOwnWay) {
  EXPECT_THAT(WhyNot(Plain(), JoinOfWorker()), testing::HasSubstr("use TLS"));
  v1::Join plain = JoinOfWorker();
  plain.set_job(kPlainJob);
  EXPECT_THAT(WhyNot(Secured(kWorker), plain), testing::HasSubstr("without TLS"));
}

TEST_F(SecuredControlTest, TheTermOfAJobIsToldToItsOwn) {
  EXPECT_EQ(TermOf(Secured(kWorker)).error_code(), grpc::StatusCode::OK);
  EXPECT_EQ(TermOf(Plain()).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  security::PeerIdentity other = kWorker;
  other.job_uid = "of-another-job";
  EXPECT_EQ(TermOf(Secured(other)).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(SecuredControlTest, CallsEndWithTheCertificateThatTheyCameWith) {
  const auto channel = Secured(kWorker, {.life = std::chrono::seconds(3)});
  EXPECT_TRUE(TermOf(channel).ok());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const auto stream = v1::Controller::NewStub(channel)->Attend(&context);
  v1::MemberMessage message;
  *message.mutable_join() = JoinOfWorker();
  stream->Write(message);
  v1::ControllerMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(TermOf(channel).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace adamant::control
