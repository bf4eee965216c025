#include "operator/kube/certificates/authority_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "services/common/security/certificate.h"
#include "tests/unit/operator/kube/certificates/cluster_rig.h"
#include "tests/unit/services/common/security/identities.h"

namespace adamant::kube {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr char kPemBegin[] = "BEGIN CERTIFICATE";
const ObjectKey kSecret{"adamant-system", "adamant-ca"};

class AuthorityKeeperTest : public testing::Test {
 protected:
  AuthorityKeeperTest() {
    rig_.client_
        .Create(kSecrets, {{"metadata", {{"name", kSecret.name}, {"namespace", kSecret.ns}}}})
        .IgnoreError();
    leader_.SetLeads(true);
  }

  [[nodiscard]] Json Secret() const { return rig_.client_.Get(kSecrets, kSecret).value(); }

  void AskForRollOver(const std::string& value) {
    Json secret = Secret();
    secret["metadata"]["annotations"][kRollOverAnnotation] = value;
    ASSERT_TRUE(rig_.client_.Update(kSecrets, secret).ok());
  }

  static std::string RootsOf(const AuthorityKeeper& keeper) {
    const auto authority = keeper.authority();
    return authority.ok() ? (*authority)->roots() : std::string(authority.status().message());
  }

  static std::string OwnRootsOf(const AuthorityKeeper& keeper) {
    const auto own = keeper.identity()->Get();
    return own == nullptr ? "none" : own->roots;
  }

  ClusterRig rig_;
  const AuthorityKeeper::Options options_{.secret = kSecret, .trust_domain = "adamant.local"};
  AuthorityKeeper leader_{rig_.client_.WithoutRetries(), options_, rig_.clock_, rig_.sleeper_};
  AuthorityKeeper standby_{rig_.client_.WithoutRetries(), options_, rig_.clock_, rig_.sleeper_};
};

TEST_F(AuthorityKeeperTest, TheLeaderMakesItAndAllReadIt) {
  standby_.Step();
  EXPECT_TRUE(absl::IsUnavailable(standby_.authority().status()));
  EXPECT_FALSE(Secret().contains("data"));
  leader_.Step();
  standby_.Step();
  EXPECT_THAT(RootsOf(leader_), testing::HasSubstr(kPemBegin));
  EXPECT_EQ(RootsOf(standby_), RootsOf(leader_));
  for (const AuthorityKeeper* keeper : {&leader_, &standby_}) {
    const auto own = keeper->identity()->Get();
    ASSERT_NE(own, nullptr);
    EXPECT_EQ(own->content.identity, security::kOperator);
    EXPECT_TRUE(
        security::VerifyCertificate(own->chain, RootsOf(leader_), rig_.clock_.WallNow()).ok());
  }
}

TEST_F(AuthorityKeeperTest, WhatIsThereIsNotMadeAnew) {
  leader_.Step();
  const Json before = Secret();
  AuthorityKeeper next(rig_.client_.WithoutRetries(), options_, rig_.clock_, rig_.sleeper_);
  next.SetLeads(true);
  next.Step();
  EXPECT_EQ(Secret(), before);
  EXPECT_EQ(RootsOf(next), RootsOf(leader_));
}

// Two that both think that they lead: one is refused by the API, and takes what the other made.
TEST_F(AuthorityKeeperTest, OneOfTwoLeadersMakesIt) {
  standby_.SetLeads(true);
  bool is_first = true;
  rig_.server_.SetFaults([&](const HttpRequest& request) {
    if (request.method == "PUT" && std::exchange(is_first, false)) {
      return MemoryApiServer::Fault::kRefuse;
    }
    return MemoryApiServer::Fault::kNone;
  });
  leader_.Step();
  EXPECT_FALSE(leader_.authority().ok()) << "nothing is done by what is not stored";
  EXPECT_EQ(leader_.identity()->Get(), nullptr);
  standby_.Step();
  leader_.Step();
  EXPECT_EQ(RootsOf(leader_), RootsOf(standby_));
}

TEST_F(AuthorityKeeperTest, ARollOverReachesAllAndTheirOwnCertificatesLastThroughIt) {
  leader_.Step();
  standby_.Step();
  const std::string first = RootsOf(leader_);
  AskForRollOver("one");
  standby_.Step();
  EXPECT_EQ(RootsOf(standby_), first) << "only the leader acts";
  for (int i = 0; i < 60; ++i) {  // five days, in which it renews its own
    leader_.Step();
    standby_.Step();
    EXPECT_EQ(RootsOf(standby_), RootsOf(leader_));
    EXPECT_EQ(OwnRootsOf(standby_), RootsOf(leader_));
    for (const AuthorityKeeper* keeper : {&leader_, &standby_}) {
      EXPECT_TRUE(security::VerifyCertificate(
                      keeper->identity()->Get()->chain, RootsOf(leader_), rig_.clock_.WallNow())
                      .ok());
    }
    rig_.clock_.Advance(hours(2));
  }
  leader_.Step();
  const std::string last = RootsOf(leader_);
  EXPECT_NE(last, first);
  EXPECT_EQ(last.find(kPemBegin), last.rfind(kPemBegin)) << "one root is left";
}

TEST_F(AuthorityKeeperTest, ItsOwnIsRenewedWhenAThirdIsLeft) {
  leader_.Step();
  const auto first = leader_.identity()->Get();
  rig_.clock_.Advance(hours(15));
  leader_.Step();
  EXPECT_EQ(leader_.identity()->Get(), first);
  rig_.clock_.Advance(hours(2));
  leader_.Step();
  EXPECT_NE(leader_.identity()->Get()->chain, first->chain);
}

TEST_F(AuthorityKeeperTest, ThatCertificatesBeginBeforeTheyAreSignedIsNoneOfTheirLife) {
  AuthorityKeeper::Options options = options_;
  options.life = std::chrono::seconds(60);
  AuthorityKeeper keeper(rig_.client_.WithoutRetries(), options, rig_.clock_, rig_.sleeper_);
  keeper.SetLeads(true);
  keeper.Step();
  const auto first = keeper.identity()->Get();
  rig_.clock_.Advance(std::chrono::seconds(38));
  keeper.Step();
  EXPECT_EQ(keeper.identity()->Get(), first);
  rig_.clock_.Advance(std::chrono::seconds(4));
  keeper.Step();
  EXPECT_NE(keeper.identity()->Get()->chain, first->chain);
}

TEST_F(AuthorityKeeperTest, ASecretOfAnotherFormatIsLeftAsItIs) {
  Json secret = Secret();
  secret["data"] = {{"format", "Mg=="}};
  ASSERT_TRUE(rig_.client_.Update(kSecrets, secret).ok());
  const Json before = Secret();
  leader_.Step();
  EXPECT_TRUE(absl::IsUnavailable(leader_.authority().status()));
  EXPECT_EQ(Secret(), before);
}

TEST_F(AuthorityKeeperTest, WhatCouldNotBeReadForAWhileDoesNotSign) {
  leader_.Step();
  rig_.server_.SetFaults(
      [](const HttpRequest& /*request*/) { return MemoryApiServer::Fault::kRefuse; });
  rig_.clock_.Advance(minutes(4));
  leader_.Step();
  EXPECT_TRUE(leader_.authority().ok());
  rig_.clock_.Advance(minutes(2));
  leader_.Step();
  EXPECT_TRUE(absl::IsUnavailable(leader_.authority().status()));
  rig_.server_.SetFaults(nullptr);
  leader_.Step();
  EXPECT_TRUE(leader_.authority().ok());
}

}  // namespace
}  // namespace adamant::kube
