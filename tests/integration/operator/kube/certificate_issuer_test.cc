#include "operator/kube/certificates/certificate_issuer.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "operator/kube_client/base/sleeper.h"
#include "proto/adamant/v1/certificates.grpc.pb.h"
#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/tls/channel_security.h"
#include "services/common/security/certificate.h"
#include "services/common/security/private_key.h"
#include "tests/fakes/kube/memory_api_server.h"
#include "tests/fakes/required_tls13.h"
#include "tests/unit/operator/kube/certificates/seen_pods.h"
#include "tests/unit/services/common/security/identities.h"
#include "tests/unit/services/common/security/tokens.h"

// An operator that issues certificates, as a process without one asks for it.
namespace adamant::kube {
namespace {

using security::Cluster;
using security::TheCluster;

std::optional<HttpResponse> AnswerOfKeys(const HttpRequest& request) {
  if (request.target == "/.well-known/openid-configuration") {
    return HttpResponse{.body = Json({{"issuer", security::kIssuer}}).dump()};
  }
  if (request.target == "/openid/v1/jwks") {
    return HttpResponse{.body = TheCluster().KeySet().dump()};
  }
  return std::nullopt;
}

class CertificateIssuerTest : public testing::Test {
 protected:
  CertificateIssuerTest() {
    server_.SetAnswers([](const HttpRequest& request) {
      auto answer = AnswerOfKeys(request);
      if (answer) {
        answer->status = 200;
      }
      return answer;
    });
    client_
        .Create(kSecrets, {{"metadata", {{"name", "adamant-ca"}, {"namespace", "adamant-system"}}}})
        .IgnoreError();
    seen_.See(SeenPods::Worker());
    issuer_.SetLeads(true);
    issuer_.Start([this] {
      const MutexLock lock(mutex_);
      has_identity_ = true;
      changed_.NotifyAll();
    });
    WaitForIdentity();
    const absl::Status served = issuer_.Serve();
    EXPECT_TRUE(served.ok()) << served;
  }

  // That of a worker's pod, valid now.
  static std::string Token() {
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    Json claims = Cluster::Claims();
    claims["iat"] = now;
    claims["nbf"] = now;
    claims["exp"] = now + 600;
    return TheCluster().Token(claims);
  }

  [[nodiscard]] std::shared_ptr<grpc::Channel> Channel() const {
    const rpc::ChannelSecurity security{.roots = issuer_.roots(),
                                        .peer = security::ExpectOperator("adamant.local")};
    return rpc::NewChannel(issuer_.address(), 1 << 16, {}, &security);
  }

  grpc::Status Issue(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& token,
                     v1::Certificate& certificate) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::CertificateRequest request;
    request.set_request(key_.MakeRequest().value());
    request.set_token(token);
    return v1::Certificates::NewStub(channel)->Issue(&context, request, &certificate);
  }

  SeenPods seen_;
  const security::PrivateKey key_ = security::PrivateKey::Make().value();

 private:
  void WaitForIdentity() {
    const MutexLock lock(mutex_);
    while (!has_identity_) {
      changed_.Wait(mutex_);
    }
  }

  SystemClock clock_;
  SystemSleeper sleeper_;
  MemoryApiServer server_{clock_, /*live=*/true};
  const Client client_{server_, clock_, sleeper_, {.rate = 1e6, .burst = 1e6}};
  Mutex mutex_;
  CondVar changed_;
  bool has_identity_ ABSL_GUARDED_BY(mutex_) = false;
  CertificateIssuer issuer_{client_,
                            {.secret = {"adamant-system", "adamant-ca"},
                             .trust_domain = "adamant.local",
                             .life = std::chrono::hours(24),
                             .listen = "127.0.0.1:0"},
                            seen_.Sources(),
                            clock_,
                            sleeper_};
};

TEST_F(CertificateIssuerTest, AProcessWithoutACertificateGetsOne) {
  v1::Certificate certificate;
  const grpc::Status status = Issue(Channel(), Token(), certificate);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto content = security::VerifyCertificate(
      certificate.chain(), certificate.roots(), std::chrono::system_clock::now());
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->identity, security::kWorker);
  EXPECT_TRUE(security::CheckKey(certificate.chain(), key_).ok());
}

TEST_F(CertificateIssuerTest, RefusalsReachThePodAsTheyAreMeant) {
  v1::Certificate certificate;
  EXPECT_EQ(Issue(Channel(), "no token", certificate).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  seen_.SeeJob("");
  EXPECT_EQ(Issue(Channel(), Token(), certificate).error_code(), grpc::StatusCode::UNAVAILABLE);
  seen_.SeeJob(security::kWorker.job_uid);
  seen_.See(SeenPods::Worker(13));
  EXPECT_EQ(Issue(Channel(), Token(), certificate).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(CertificateIssuerTest, ThePortIsForNothingElse) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::GetTermRequest request;
  v1::Term term;
  EXPECT_EQ(v1::Controller::NewStub(Channel())->GetTerm(&context, request, &term).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace adamant::kube
