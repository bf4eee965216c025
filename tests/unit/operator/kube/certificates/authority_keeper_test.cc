#include "operator/kube/certificates/authority_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/kube_client/base/base64.h"
#include "services/common/security/certificate.h"
#include "tests/unit/operator/kube/certificates/cluster_rig.h"
#include "tests/unit/services/common/security/identities.h"
#include "tests/unit/services/common/security/intermediate.h"

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

// With cert-manager's Secret, as the clock of its certificates has it.
class IssuedAuthorityTest : public AuthorityKeeperTest {
 protected:
  IssuedAuthorityTest() {
    rig_.clock_.Advance(security::kBuiltBegin + hours(1) - rig_.clock_.WallNow());
    issued_.SetLeads(true);
  }

  // As cert-manager does; what is left out of `data` is not there.
  void Give(const security::Intermediate& given, const std::string& left_out = "") {
    Json secret = {{"metadata", {{"name", "issued"}, {"namespace", kSecret.ns}}},
                   {"data",
                    {{"tls.crt", EncodeBase64(given.chain)},
                     {"tls.key", EncodeBase64(given.key.ToPem())},
                     {"ca.crt", EncodeBase64(given.root)}}}};
    secret["data"].erase(left_out);
    rig_.client_.Delete(kSecrets, {kSecret.ns, "issued"}).IgnoreError();
    ASSERT_TRUE(rig_.client_.Create(kSecrets, secret).ok());
  }

  [[nodiscard]] Json Issued() const {
    return rig_.client_.Get(kSecrets, {kSecret.ns, "issued"}).value();
  }

  static AuthorityKeeper::Options WithIssuer(AuthorityKeeper::Options options) {
    options.issuer_secret = "issued";
    return options;
  }

  AuthorityKeeper issued_{
      rig_.client_.WithoutRetries(), WithIssuer(options_), rig_.clock_, rig_.sleeper_};
};

TEST_F(IssuedAuthorityTest, WhatTheIssuerGivesSignsAndIsLeftAsItIs) {
  issued_.Step();
  EXPECT_TRUE(absl::IsUnavailable(issued_.authority().status())) << "nothing is given yet";
  EXPECT_FALSE(Secret().contains("data")) << "no root is made instead";
  const security::Intermediate given;
  Give(given);
  const Json before = Issued();
  issued_.Step();
  EXPECT_EQ(RootsOf(issued_), given.root);
  const auto own = issued_.identity()->Get();
  ASSERT_NE(own, nullptr);
  EXPECT_TRUE(security::VerifyCertificate(own->chain, given.root, rig_.clock_.WallNow()).ok());
  EXPECT_EQ(Issued(), before);
}

TEST_F(IssuedAuthorityTest, ARenewalIsFollowedByAll) {
  const security::Intermediate first;
  Give(first);
  issued_.Step();
  standby_.Step();
  Give(first.Renewed());
  issued_.Step();  // prepares
  issued_.Step();  // and switches: the root is trusted already
  standby_.Step();
  ASSERT_TRUE(issued_.authority().ok());
  EXPECT_FALSE((*issued_.authority())->has_next());
  EXPECT_EQ(RootsOf(issued_), first.root);
  ASSERT_TRUE(standby_.authority().ok());
  EXPECT_TRUE((*standby_.authority())->SignsAs(**issued_.authority()));
  const Json stored = Secret();
  issued_.Step();
  EXPECT_EQ(Secret(), stored) << "it is followed once";
}

TEST_F(IssuedAuthorityTest, WhatIsOfNoUseIsNotTakenAndWhatWasGivenBeforeGoesOn) {
  const security::Intermediate first;
  Give(first);
  issued_.Step();
  const Json before = Secret();
  for (const char* key : {"tls.crt", "tls.key", "ca.crt"}) {
    Give(security::Intermediate(), key);
    issued_.Step();
    EXPECT_EQ(Secret(), before) << key;
  }
  security::Intermediate of_another_root;
  of_another_root.root = security::Intermediate().root;
  Give(of_another_root);
  issued_.Step();
  EXPECT_EQ(Secret(), before);
  EXPECT_EQ(RootsOf(issued_), first.root);
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
