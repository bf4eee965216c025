#include "operator/kube/certificates/certificate_service.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "proto/adamant/v1/certificates.pb.h"
#include "services/common/security/certificate.h"
#include "services/common/security/private_key.h"
#include "tests/unit/operator/kube/certificates/cluster_rig.h"
#include "tests/unit/operator/kube/certificates/seen_pods.h"
#include "tests/unit/services/common/security/identities.h"

namespace adamant::kube {
namespace {

using security::CertificateAuthority;
using security::Cluster;
using security::kTokenTime;
using security::TheCluster;
using std::chrono::hours;
using std::chrono::seconds;

class Counts final : public CertificateObserver {
 public:
  void OnIssued(security::Role role) override { ++issued_[role]; }
  void OnRefused(Refusal reason) override { ++refused_[reason]; }
  void OnEnd(Kind /*kind*/, security::WallTime /*end*/) override {}

  std::map<security::Role, int> issued_;
  std::map<Refusal, int> refused_;
};

class CertificateServiceTest : public testing::Test {
 protected:
  CertificateServiceTest() {
    seen_.See(SeenPods::Worker());
    request_.set_request(key_.MakeRequest().value());
    request_.set_token(TheCluster().Token(Cluster::Claims()));
  }

  absl::StatusOr<v1::Certificate> Issue() { return service_.Issue(request_); }

  ClusterRig rig_;
  SeenPods seen_;
  Counts counts_;
  std::shared_ptr<const CertificateAuthority> authority_ =
      std::make_shared<const CertificateAuthority>(
          CertificateAuthority::Make(kTokenTime, hours(24 * 365)).value());
  const security::PrivateKey key_ = security::PrivateKey::Make().value();
  v1::CertificateRequest request_;

 private:
  ClusterKeys keys_{rig_.client_.WithoutRetries(), rig_.clock_, security::kAudience};
  PodIdentities pods_{"adamant.local", seen_.Sources()};

 protected:
  CertificateService service_{
      {.keys = keys_,
       .pods = pods_,
       .authority = [this]() -> absl::StatusOr<CertificateService::Authority> {
         return authority_ != nullptr ? absl::StatusOr<CertificateService::Authority>(authority_)
                                      : absl::UnavailableError("none yet");
       },
       .clock = rig_.clock_,
       .observer = &counts_},
      hours(24)};
};

TEST_F(CertificateServiceTest, APodGetsTheCertificateOfItsProcess) {
  const auto issued = Issue();
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_EQ(issued->roots(), authority_->roots());
  const auto content = security::VerifyCertificate(issued->chain(), issued->roots(), kTokenTime);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->identity, security::kWorker);
  EXPECT_EQ(content->not_after, kTokenTime + hours(24));
  EXPECT_TRUE(security::CheckKey(issued->chain(), key_).ok());
  EXPECT_EQ(issued->renew_after_seconds(), seconds(hours(16)).count());
  EXPECT_EQ(counts_.issued_, (std::map<security::Role, int>{{security::Role::kWorker, 1}}));
}

TEST_F(CertificateServiceTest, ItIsIssuedAgainUntilThePodIsReplaced) {
  EXPECT_TRUE(Issue().ok());
  EXPECT_TRUE(Issue().ok());
  seen_.See(SeenPods::Worker(13));
  EXPECT_TRUE(absl::IsPermissionDenied(Issue().status()));
  EXPECT_EQ(counts_.refused_.at(CertificateObserver::Refusal::kReplaced), 1);
}

TEST_F(CertificateServiceTest, RequestsOfTheWrongSizeAreNone) {
  request_.clear_request();
  EXPECT_TRUE(absl::IsInvalidArgument(Issue().status()));
  request_.set_request(std::string(security::kMostRequestBytes + 1, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(Issue().status()));
  request_.set_request(key_.MakeRequest().value());
  request_.set_token(std::string(security::kMostTokenBytes + 1, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(Issue().status()));
  EXPECT_TRUE(absl::IsInvalidArgument(service_.IssueSerialized("\xff\xff\xff").status()));
}

TEST_F(CertificateServiceTest, WhatIsNoRequestIsNotSigned) {
  request_.set_request("not a request");
  EXPECT_TRUE(absl::IsInvalidArgument(Issue().status()));
  EXPECT_TRUE(counts_.issued_.empty());
}

TEST_F(CertificateServiceTest, TokensThatAreNotGoodAreRefused) {
  Json claims = Cluster::Claims();
  claims["exp"] = security::kSeconds - 3600;
  request_.set_token(TheCluster().Token(claims));
  EXPECT_TRUE(absl::IsUnauthenticated(Issue().status()));
  request_.set_token("");
  EXPECT_TRUE(absl::IsUnauthenticated(Issue().status()));
  EXPECT_EQ(counts_.refused_.at(CertificateObserver::Refusal::kBadToken), 2);
}

TEST_F(CertificateServiceTest, WhatCannotBeToldNowIsToTryAgain) {
  Json claims = Cluster::Claims();
  claims["kubernetes.io"]["pod"] = {{"name", "digits-worker-9-1"}, {"uid", "not-seen"}};
  request_.set_token(TheCluster().Token(claims));
  EXPECT_TRUE(absl::IsUnavailable(Issue().status()));
  request_.set_token(TheCluster().Token(Cluster::Claims()));
  authority_ = nullptr;
  EXPECT_TRUE(absl::IsUnavailable(Issue().status()));
  authority_ = std::make_shared<const CertificateAuthority>(
      CertificateAuthority::Make(kTokenTime - hours(2), hours(1)).value());
  EXPECT_TRUE(absl::IsUnavailable(Issue().status())) << "the root has ended";
  EXPECT_TRUE(counts_.refused_.empty());
}

TEST_F(CertificateServiceTest, APodThatTalksToNobodyGetsNone) {
  PodView trial = SeenPods::Worker();
  trial.output = kOutputTrial;
  seen_.See(trial);
  EXPECT_TRUE(absl::IsPermissionDenied(Issue().status()));
  EXPECT_EQ(counts_.refused_.at(CertificateObserver::Refusal::kWrongJob), 1);
}

}  // namespace
}  // namespace adamant::kube
