#include "services/common/security/token_verifier.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <nlohmann/json.hpp>

#include "services/common/security/base64url.h"
#include "tests/unit/services/common/security/tokens.h"

namespace adamant::security {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;

absl::StatusOr<PodToken> Verify(const std::string& token,
                                const JsonWebKeys& keys,
                                WallTime now = kTokenTime) {
  return TokenVerifier({.issuer = kIssuer, .audience = kAudience}).Verify(token, keys, now);
}

std::string WhyNot(const Cluster& cluster, const Json& claims) {
  const absl::Status status = Verify(cluster.Token(claims), cluster.Keys()).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  return std::string(status.message());
}

TEST(TokenVerifierTest, ReadsTokensOfBothAlgorithms) {
  const Cluster& cluster = TheCluster();
  for (const Json& header : {Cluster::RsaHeader(), Cluster::CurveHeader()}) {
    const auto token = Verify(cluster.Token(Cluster::Claims(), header), cluster.Keys());
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_EQ(token->name_space, "team-a");
    EXPECT_EQ(token->pod_name, "digits-worker-3-12");
    EXPECT_EQ(token->pod_uid, "aa-bb");
    EXPECT_EQ(token->service_account, "default");
    EXPECT_EQ(token->expires, kTokenTime + seconds(600));
  }
}

TEST(TokenVerifierTest, OneAudienceMayBeAText) {
  const Cluster& cluster = TheCluster();
  Json claims = Cluster::Claims();
  claims["aud"] = kAudience;
  EXPECT_TRUE(Verify(cluster.Token(claims), cluster.Keys()).ok());
}

TEST(TokenVerifierTest, OtherClaimsAreRefused) {
  const Cluster& cluster = TheCluster();
  const auto with = [&](const char* name, const Json& value) {
    Json claims = Cluster::Claims();
    claims[name] = value;
    return WhyNot(cluster, claims);
  };
  EXPECT_EQ(with("iss", "https://other"), "token: of another issuer");
  EXPECT_EQ(with("iss", nullptr), "token: of another issuer");
  EXPECT_EQ(with("aud", "https://kubernetes.default.svc"), "token: for another audience");
  EXPECT_EQ(with("aud", Json::array()), "token: for another audience");
  EXPECT_EQ(with("aud", {{"a", kAudience}}), "token: for another audience");
  EXPECT_EQ(with("exp", nullptr), "token: without times");
  EXPECT_EQ(with("exp", "1900000000"), "token: without times");
  EXPECT_EQ(with("exp", 1e12), "token: without times");
  EXPECT_EQ(with("exp", INT64_MAX), "token: without times");
  EXPECT_EQ(with("exp", -1), "token: without times");
  EXPECT_EQ(with("nbf", "now"), "token: without times");
  EXPECT_EQ(with("kubernetes.io", nullptr), "token: not of a pod");
  EXPECT_EQ(with("kubernetes.io", {{"namespace", "team-a"}, {"pod", "x"}}), "token: not of a pod");
}

TEST(TokenVerifierTest, EachNameOfThePodMustBeThere) {
  const Cluster& cluster = TheCluster();
  for (const char* const path : {"/kubernetes.io/namespace",
                                 "/kubernetes.io/pod/name",
                                 "/kubernetes.io/pod/uid",
                                 "/kubernetes.io/serviceaccount/name"}) {
    Json claims = Cluster::Claims();
    claims[Json::json_pointer(path)] = 7;
    EXPECT_EQ(WhyNot(cluster, claims), "token: not of a pod") << path;
  }
}

TEST(TokenVerifierTest, TimesCountWithSomeSkew) {
  const Cluster& cluster = TheCluster();
  const JsonWebKeys keys = cluster.Keys();
  const std::string token = cluster.Token(Cluster::Claims());
  EXPECT_FALSE(Verify(token, keys, kTokenTime - seconds(31)).ok());
  EXPECT_TRUE(Verify(token, keys, kTokenTime - seconds(30)).ok());
  EXPECT_TRUE(Verify(token, keys, kTokenTime + seconds(629)).ok());
  EXPECT_FALSE(Verify(token, keys, kTokenTime + seconds(630)).ok());
}

TEST(TokenVerifierTest, KeysThatAreNotKnownAreTold) {
  const Cluster& cluster = TheCluster();
  const std::string token = cluster.Token(Cluster::Claims(), {{"alg", "RS256"}, {"kid", "newer"}});
  EXPECT_TRUE(absl::IsNotFound(Verify(token, cluster.Keys()).status()));
}

TEST(TokenVerifierTest, OtherKeysAndChangedTokensAreRefused) {
  const Cluster other;
  const Cluster& cluster = TheCluster();
  const JsonWebKeys keys = cluster.Keys();
  for (const Json& header : {Cluster::RsaHeader(), Cluster::CurveHeader()}) {
    const std::string token = cluster.Token(Cluster::Claims(), header);
    EXPECT_EQ(Verify(token, other.Keys()).status().message(), "token: wrong signature");
    for (std::size_t i = 0; i < token.size(); i += 7) {
      std::string changed = token;
      changed[i] = changed[i] == 'A' ? 'B' : 'A';
      EXPECT_FALSE(Verify(changed, keys).ok()) << "byte " << i;
      EXPECT_FALSE(Verify(token.substr(0, i), keys).ok()) << "of " << i << " bytes";
    }
    EXPECT_FALSE(Verify(token + ".e30", keys).ok());
  }
}

TEST(TokenVerifierTest, AlgorithmsThatProveNothingAreRefused) {
  const Cluster& cluster = TheCluster();
  const JsonWebKeys keys = cluster.Keys();
  for (const char* const algorithm : {"none", "None", "", "HS256", "HS512", "PS256", "RS1"}) {
    const std::string token =
        cluster.Token(Cluster::Claims(), {{"alg", algorithm}, {"kid", "rsa"}});
    EXPECT_TRUE(absl::IsUnauthenticated(Verify(token, keys).status())) << algorithm;
    const std::string unsigned_token = token.substr(0, token.rfind('.') + 1);
    EXPECT_FALSE(Verify(unsigned_token, keys).ok()) << algorithm;
  }
}

TEST(TokenVerifierTest, TheKeySaysWhichAlgorithm) {
  const Cluster& cluster = TheCluster();
  for (const Json& header :
       {Json{{"alg", "RS256"}, {"kid", "curve"}}, Json{{"alg", "ES256"}, {"kid", "rsa"}}}) {
    EXPECT_EQ(Verify(cluster.Token(Cluster::Claims(), header), cluster.Keys()).status().message(),
              "token: wrong signature");
  }
}

TEST(TokenVerifierTest, HeadersWithExtensionsAreRefused) {
  const Cluster& cluster = TheCluster();
  Json header = Cluster::RsaHeader();
  header["crit"] = Json::array({"b64"});
  EXPECT_FALSE(Verify(cluster.Token(Cluster::Claims(), header), cluster.Keys()).ok());
}

TEST(TokenVerifierTest, WhatIsNoTokenIsRefused) {
  const Cluster& cluster = TheCluster();
  const JsonWebKeys keys = cluster.Keys();
  for (const std::string& text : {std::string(),
                                  std::string("a"),
                                  std::string(".."),
                                  std::string("e30.e30.e30"),
                                  "W10." + Encode("{}") + ".AA",
                                  Encode(std::string(5000, '[')) + ".e30.AA"}) {
    EXPECT_FALSE(Verify(text, keys).ok()) << text;
  }
  Json claims = Cluster::Claims();
  claims["padding"] = std::string(kMostTokenBytes, 'a');
  EXPECT_EQ(Verify(cluster.Token(claims), keys).status().message(), "token: not a JWT");
}

TEST(JsonWebKeysTest, KeysThatAreNotForUsArePassedOver) {
  const Cluster& cluster = TheCluster();
  Json set = cluster.KeySet();
  Json& keys = set["keys"];
  Json secret = {{"kty", "oct"}, {"kid", "secret"}, {"k", "AAAA"}};
  Json encryption = keys[0];
  encryption["kid"] = "encryption";
  encryption["use"] = "enc";
  Json other = keys[0];
  other["kid"] = "other";
  other["alg"] = "RS512";
  Json nameless = keys[0];
  nameless.erase("kid");
  Json off_curve = keys[1];
  off_curve["kid"] = "off";
  off_curve["x"] = keys[1]["y"];
  keys.insert(keys.end(), {secret, encryption, other, nameless, off_curve, Json(3)});
  const JsonWebKeys read = JsonWebKeys::Parse(set.dump()).value();
  EXPECT_NE(read.Find("rsa"), nullptr);
  EXPECT_NE(read.Find("curve"), nullptr);
  for (const char* const name : {"secret", "encryption", "other", "off", ""}) {
    EXPECT_EQ(read.Find(name), nullptr) << name;
  }
}

TEST(JsonWebKeysTest, ShortKeysAreRefused) {
  EVP_PKEY* const key = EVP_RSA_gen(1024);
  const Json set = {{"keys", Json::array({Cluster::RsaKey(*key)})}};
  EVP_PKEY_free(key);
  EXPECT_FALSE(JsonWebKeys::Parse(set.dump()).ok());
}

TEST(JsonWebKeysTest, WhatIsNoSetIsRefused) {
  for (const std::string& text : {std::string(),
                                  std::string("[]"),
                                  std::string("{}"),
                                  std::string(R"({"keys": 1})"),
                                  std::string(R"({"keys": []})"),
                                  std::string(kMostKeysBytes + 1, ' ')}) {
    EXPECT_FALSE(JsonWebKeys::Parse(text).ok()) << text.substr(0, 20);
  }
}

TEST(Base64UrlTest, ReadsWhatAnEncoderWrites) {
  EXPECT_EQ(DecodeBase64Url(""), "");
  EXPECT_EQ(DecodeBase64Url("Zg"), "f");
  EXPECT_EQ(DecodeBase64Url("Zm8"), "fo");
  EXPECT_EQ(DecodeBase64Url("Zm9v"), "foo");
  EXPECT_EQ(DecodeBase64Url("-_-_"), "\xfb\xff\xbf");
}

TEST(Base64UrlTest, OtherSpellingsAreRefused) {
  for (const char* const text : {"Z", "Zh", "Zm9", "Zm9vZ", "Zg==", "+/+/", "Zm 9v", "Zm9v\n"}) {
    EXPECT_FALSE(DecodeBase64Url(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace adamant::security
