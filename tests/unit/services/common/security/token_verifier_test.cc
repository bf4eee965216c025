#include "services/common/security/token_verifier.h"

#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "services/common/security/base64url.h"

namespace adamant::security {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;

constexpr std::int64_t kSeconds = 1'800'000'000;
const WallTime kTokenTime = std::chrono::system_clock::from_time_t(kSeconds);
constexpr char kIssuer[] = "https://kubernetes.default.svc";
constexpr char kAudience[] = "adamant.dev/certificates/adamant.local";

std::string Encode(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 6) {
    unsigned digit = 0;
    for (std::size_t i = bit; i < bit + 6; ++i) {
      const bool set = i < bytes.size() * 8 && (bytes[i / 8] >> (7 - i % 8) & 1) != 0;
      digit = digit << 1 | (set ? 1U : 0U);
    }
    text += kDigits[digit];
  }
  return text;
}

std::string BytesOf(const BIGNUM* number, int size) {
  std::string bytes(size, '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), size);
  return bytes;
}

// What a cluster has: keys, and what it signs with them.
class Cluster {
 public:
  Cluster() : rsa_(EVP_RSA_gen(2048), EVP_PKEY_free), curve_(EVP_EC_gen("P-256"), EVP_PKEY_free) {}

  [[nodiscard]] Json KeySet() const { return {{"keys", Json::array({RsaKey(*rsa_), CurveKey()})}}; }

  [[nodiscard]] JsonWebKeys Keys() const { return JsonWebKeys::Parse(KeySet().dump()).value(); }

  static Json Claims() {
    return {{"iss", kIssuer},
            {"aud", Json::array({kAudience})},
            {"iat", kSeconds},
            {"nbf", kSeconds},
            {"exp", kSeconds + 600},
            {"sub", "system:serviceaccount:team-a:default"},
            {"kubernetes.io",
             {{"namespace", "team-a"},
              {"pod", {{"name", "digits-worker-3-12"}, {"uid", "aa-bb"}}},
              {"serviceaccount", {{"name", "default"}, {"uid", "cc-dd"}}}}}};
  }

  [[nodiscard]] std::string Token(const Json& claims, const Json& header) const {
    const std::string text = Encode(header.dump()) + '.' + Encode(claims.dump());
    return text + '.' +
           Encode(header.value("alg", "") == "ES256" ? SignCurve(text) : SignRsa(text));
  }
  [[nodiscard]] std::string Token(const Json& claims) const { return Token(claims, RsaHeader()); }

  static Json RsaHeader() { return {{"alg", "RS256"}, {"kid", "rsa"}}; }
  static Json CurveHeader() { return {{"alg", "ES256"}, {"kid", "curve"}}; }

  static Json RsaKey(const EVP_PKEY& key) {
    BIGNUM* n = nullptr;
    BIGNUM* e = nullptr;
    EVP_PKEY_get_bn_param(&key, OSSL_PKEY_PARAM_RSA_N, &n);
    EVP_PKEY_get_bn_param(&key, OSSL_PKEY_PARAM_RSA_E, &e);
    Json json = {{"kty", "RSA"},
                 {"kid", "rsa"},
                 {"alg", "RS256"},
                 {"use", "sig"},
                 {"n", Encode(BytesOf(n, BN_num_bytes(n)))},
                 {"e", Encode(BytesOf(e, BN_num_bytes(e)))}};
    BN_free(n);
    BN_free(e);
    return json;
  }

 private:
  [[nodiscard]] Json CurveKey() const {
    BIGNUM* x = nullptr;
    BIGNUM* y = nullptr;
    EVP_PKEY_get_bn_param(curve_.get(), OSSL_PKEY_PARAM_EC_PUB_X, &x);
    EVP_PKEY_get_bn_param(curve_.get(), OSSL_PKEY_PARAM_EC_PUB_Y, &y);
    Json json = {{"kty", "EC"},
                 {"kid", "curve"},
                 {"crv", "P-256"},
                 {"x", Encode(BytesOf(x, 32))},
                 {"y", Encode(BytesOf(y, 32))}};
    BN_free(x);
    BN_free(y);
    return json;
  }

  static std::string Sign(EVP_PKEY* key, const std::string& text) {
    EVP_MD_CTX* const context = EVP_MD_CTX_new();
    EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key);
    std::size_t size = 1024;
    std::string signature(size, '\0');
    EVP_DigestSign(context,
                   reinterpret_cast<unsigned char*>(signature.data()),
                   &size,
                   reinterpret_cast<const unsigned char*>(text.data()),
                   text.size());
    EVP_MD_CTX_free(context);
    signature.resize(size);
    return signature;
  }

  [[nodiscard]] std::string SignRsa(const std::string& text) const {
    return Sign(rsa_.get(), text);
  }

  [[nodiscard]] std::string SignCurve(const std::string& text) const {
    const std::string der = Sign(curve_.get(), text);
    const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* const read = d2i_ECDSA_SIG(nullptr, &bytes, static_cast<long>(der.size()));
    std::string numbers = BytesOf(ECDSA_SIG_get0_r(read), 32) + BytesOf(ECDSA_SIG_get0_s(read), 32);
    ECDSA_SIG_free(read);
    return numbers;
  }

  std::shared_ptr<EVP_PKEY> rsa_;
  std::shared_ptr<EVP_PKEY> curve_;
};

// One for all tests: RSA keys take long to make.
const Cluster& TheCluster() {
  static const Cluster cluster;
  return cluster;
}

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
