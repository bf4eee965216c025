#include "services/common/security/json_web_keys.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "services/common/security/base64url.h"
#include "services/common/security/openssl.h"

namespace adamant::security {
namespace {

using Json = nlohmann::json;
using BigNumber = std::unique_ptr<BIGNUM, openssl::Deleter<BIGNUM, BN_free>>;
using ParameterBuilder =
    std::unique_ptr<OSSL_PARAM_BLD, openssl::Deleter<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>>;
using Parameters = std::unique_ptr<OSSL_PARAM, openssl::Deleter<OSSL_PARAM, OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, openssl::Deleter<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;

constexpr int kLeastRsaBits = 2048;
constexpr int kMostRsaBits = 8192;
constexpr std::size_t kCoordinateBytes = 32;

// The text of a member; empty where it is none.
std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The bytes of a member; empty where it has none.
std::string BytesOf(const Json& object, const char* name) {
  return DecodeBase64Url(TextOf(object, name)).value_or("");
}

BigNumber NumberOf(const std::string& bytes) {
  return BigNumber(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                             static_cast<int>(bytes.size()),
                             nullptr));
}

// Null where the parameters are no public key.
openssl::Key KeyFrom(const char* kind, OSSL_PARAM_BLD& builder) {
  const Parameters parameters(OSSL_PARAM_BLD_to_param(&builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, kind, nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
    return nullptr;
  }
  openssl::Key owned(key, EVP_PKEY_free);
  const KeyContext check(EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
  return check != nullptr && EVP_PKEY_public_check(check.get()) == 1 ? owned : nullptr;
}

openssl::Key RsaKey(const Json& object) {
  const BigNumber modulus = NumberOf(BytesOf(object, "n"));
  const BigNumber exponent = NumberOf(BytesOf(object, "e"));
  const ParameterBuilder builder(OSSL_PARAM_BLD_new());
  if (modulus == nullptr || exponent == nullptr || builder == nullptr ||
      BN_num_bits(modulus.get()) < kLeastRsaBits || BN_num_bits(modulus.get()) > kMostRsaBits ||
      BN_num_bits(exponent.get()) > 32 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1) {
    return nullptr;
  }
  return KeyFrom("RSA", *builder);
}

openssl::Key CurveKey(const Json& object) {
  const std::string x = BytesOf(object, "x");
  const std::string y = BytesOf(object, "y");
  const ParameterBuilder builder(OSSL_PARAM_BLD_new());
  if (TextOf(object, "crv") != "P-256" || x.size() != kCoordinateBytes ||
      y.size() != kCoordinateBytes || builder == nullptr) {
    return nullptr;
  }
  const std::string point = '\x04' + x + y;  // uncompressed
  if (OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(
          builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1) {
    return nullptr;
  }
  return KeyFrom("EC", *builder);
}

// Nothing: a key that is not for us.
std::optional<JsonWebKeys::Key> ReadKey(const Json& object) {
  using Algorithm = JsonWebKeys::Algorithm;
  const std::string kind = TextOf(object, "kty");
  const std::string use = TextOf(object, "use");
  const bool is_rsa = kind == "RSA";
  const std::string named = TextOf(object, "alg");
  if ((!is_rsa && kind != "EC") || (!use.empty() && use != "sig") ||
      (!named.empty() && named != (is_rsa ? "RS256" : "ES256"))) {
    return std::nullopt;
  }
  openssl::Key key = is_rsa ? RsaKey(object) : CurveKey(object);
  ERR_clear_error();
  if (key == nullptr) {
    return std::nullopt;
  }
  return JsonWebKeys::Key{.algorithm = is_rsa ? Algorithm::kRs256 : Algorithm::kEs256,
                          .key = std::move(key)};
}

}  // namespace

absl::StatusOr<JsonWebKeys> JsonWebKeys::Parse(std::string_view json) {
  if (json.size() > kMostKeysBytes) {
    return absl::InvalidArgumentError("a set of keys of more than 64 KiB");
  }
  const Json set = Json::parse(json, nullptr, false);
  const auto listed = set.is_object() ? set.find("keys") : set.end();
  if (!set.is_object() || listed == set.end() || !listed->is_array()) {
    return absl::InvalidArgumentError("not a set of keys (JSON Web Key Set)");
  }
  JsonWebKeys keys;
  for (const Json& object : *listed) {
    if (!object.is_object()) {
      continue;
    }
    std::string name = TextOf(object, "kid");
    if (std::optional<Key> key = name.empty() ? std::nullopt : ReadKey(object)) {
      keys.keys_.emplace(std::move(name), *std::move(key));
    }
  }
  if (keys.keys_.empty()) {
    return absl::InvalidArgumentError("a set without a key for RS256 or ES256");
  }
  return keys;
}

const JsonWebKeys::Key* JsonWebKeys::Find(std::string_view name) const {
  const auto found = keys_.find(name);
  return found == keys_.end() ? nullptr : &found->second;
}

}  // namespace adamant::security
