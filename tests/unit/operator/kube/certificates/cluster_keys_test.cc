#include "operator/kube/certificates/cluster_keys.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/operator/kube/certificates/cluster_rig.h"

namespace adamant::kube {
namespace {

using security::Cluster;
using security::TheCluster;
using std::chrono::minutes;
using std::chrono::seconds;

class ClusterKeysTest : public testing::Test {
 protected:
  // A token that lives on, signed by a key that is published under another name.
  static std::string TokenOf(const std::string& kid) {
    Json header = Cluster::RsaHeader();
    header["kid"] = kid;
    Json claims = Cluster::Claims();
    claims["exp"] = security::kSeconds + 86'400;
    return TheCluster().Token(claims, header);
  }

  ClusterRig rig_;
  ClusterKeys keys_{rig_.client_.WithoutRetries(), rig_.clock_, security::kAudience};
};

TEST_F(ClusterKeysTest, KeysAreReadOnceInTenMinutes) {
  for (int i = 0; i < 3; ++i) {
    const auto token = keys_.Verify(TokenOf("rsa"));
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_EQ(token->pod_uid, "aa-bb");
  }
  EXPECT_EQ(rig_.readings_, 1);
  rig_.clock_.Advance(minutes(10));
  EXPECT_TRUE(keys_.Verify(TokenOf("rsa")).ok());
  EXPECT_EQ(rig_.readings_, 2);
}

TEST_F(ClusterKeysTest, AnUnknownKeyIsLookedForButNotByEveryToken) {
  EXPECT_TRUE(keys_.Verify(TokenOf("rsa")).ok());
  rig_.keys_["keys"][0]["kid"] = "new";
  EXPECT_TRUE(absl::IsUnauthenticated(keys_.Verify(TokenOf("new")).status()));
  EXPECT_EQ(rig_.readings_, 1) << "they were read just now";
  rig_.clock_.Advance(seconds(10));
  EXPECT_TRUE(keys_.Verify(TokenOf("new")).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(absl::IsUnauthenticated(keys_.Verify(TokenOf("rsa")).status()));
  }
  EXPECT_EQ(rig_.readings_, 2);
}

TEST_F(ClusterKeysTest, AnApiThatIsAwayIsNotNoticedOnceKeysAreKnown) {
  rig_.is_away_ = true;
  EXPECT_TRUE(absl::IsUnavailable(keys_.Verify(TokenOf("rsa")).status()));
  rig_.is_away_ = false;
  EXPECT_TRUE(absl::IsUnavailable(keys_.Verify(TokenOf("rsa")).status())) << "asked just now";
  rig_.clock_.Advance(seconds(10));
  EXPECT_TRUE(keys_.Verify(TokenOf("rsa")).ok());
  rig_.is_away_ = true;
  rig_.clock_.Advance(minutes(30));
  EXPECT_TRUE(keys_.Verify(TokenOf("rsa")).ok());
}

TEST_F(ClusterKeysTest, TokensForOthersAreRefused) {
  Json claims = Cluster::Claims();
  claims["aud"] = Json::array({"https://kubernetes.default.svc"});
  EXPECT_TRUE(absl::IsUnauthenticated(keys_.Verify(TheCluster().Token(claims)).status()));
  claims = Cluster::Claims();
  claims["iss"] = "https://other";
  EXPECT_TRUE(absl::IsUnauthenticated(keys_.Verify(TheCluster().Token(claims)).status()));
}

}  // namespace
}  // namespace adamant::kube
