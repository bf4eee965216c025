#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "services/common/security/certificate.h"
#include "services/common/security/json_web_keys.h"

// Tokens of pods, as a cluster signs them.
namespace adamant::security {

inline constexpr std::int64_t kSeconds = 1'800'000'000;
inline const WallTime kTokenTime = std::chrono::system_clock::from_time_t(kSeconds);
inline constexpr char kIssuer[] = "https://kubernetes.default.svc";
inline constexpr char kAudience[] = "adamant.dev/certificates/adamant.local";

inline std::string Encode(const std::string& bytes) {
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

inline std::string BytesOf(const BIGNUM* number, int size) {
  std::string bytes(size, '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), size);
  return bytes;
}

// What a cluster has: keys, and what it signs with them.
class Cluster {
 public:
  Cluster() : rsa_(EVP_RSA_gen(2048), EVP_PKEY_free), curve_(EVP_EC_gen("P-256"), EVP_PKEY_free) {}

  [[nodiscard]] nlohmann::json KeySet() const {
    return {{"keys", nlohmann::json::array({RsaKey(*rsa_), CurveKey()})}};
  }

  [[nodiscard]] JsonWebKeys Keys() const { return JsonWebKeys::Parse(KeySet().dump()).value(); }

  static nlohmann::json Claims() {
    return {{"iss", kIssuer},
            {"aud", nlohmann::json::array({kAudience})},
            {"iat", kSeconds},
            {"nbf", kSeconds},
            {"exp", kSeconds + 600},
            {"sub", "system:serviceaccount:team-a:default"},
            {"kubernetes.io",
             {{"namespace", "team-a"},
              {"pod", {{"name", "digits-worker-3-12"}, {"uid", "aa-bb"}}},
              {"serviceaccount", {{"name", "default"}, {"uid", "cc-dd"}}}}}};
  }

  [[nodiscard]] std::string Token(const nlohmann::json& claims,
                                  const nlohmann::json& header) const {
    const std::string text = Encode(header.dump()) + '.' + Encode(claims.dump());
    return text + '.' +
           Encode(header.value("alg", "") == "ES256" ? SignCurve(text) : SignRsa(text));
  }
  [[nodiscard]] std::string Token(const nlohmann::json& claims) const {
    return Token(claims, RsaHeader());
  }

  static nlohmann::json RsaHeader() { return {{"alg", "RS256"}, {"kid", "rsa"}}; }
  static nlohmann::json CurveHeader() { return {{"alg", "ES256"}, {"kid", "curve"}}; }

  static nlohmann::json RsaKey(const EVP_PKEY& key) {
    BIGNUM* n = nullptr;
    BIGNUM* e = nullptr;
    EVP_PKEY_get_bn_param(&key, OSSL_PKEY_PARAM_RSA_N, &n);
    EVP_PKEY_get_bn_param(&key, OSSL_PKEY_PARAM_RSA_E, &e);
    nlohmann::json json = {{"kty", "RSA"},
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
  [[nodiscard]] nlohmann::json CurveKey() const {
    BIGNUM* x = nullptr;
    BIGNUM* y = nullptr;
    EVP_PKEY_get_bn_param(curve_.get(), OSSL_PKEY_PARAM_EC_PUB_X, &x);
    EVP_PKEY_get_bn_param(curve_.get(), OSSL_PKEY_PARAM_EC_PUB_Y, &y);
    nlohmann::json json = {{"kty", "EC"},
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
inline const Cluster& TheCluster() {
  static const Cluster cluster;
  return cluster;
}

}  // namespace adamant::security
