#include "services/common/security/token_verifier.h"

#include <openssl/ecdsa.h>
#include <openssl/err.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/security/base64url.h"
#include "services/common/security/openssl.h"

namespace adamant::security {
namespace {

using Json = nlohmann::json;
using Digest = std::unique_ptr<EVP_MD_CTX, openssl::Deleter<EVP_MD_CTX, EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, openssl::Deleter<ECDSA_SIG, ECDSA_SIG_free>>;

constexpr std::size_t kCurveNumberBytes = 32;

absl::Status Refused(const std::string& why) { return absl::UnauthenticatedError("token: " + why); }

struct TokenParts {
  std::string_view signed_text;  // header and claims, as they were signed
  std::string_view header;       // encoded, as are the claims
  std::string_view claims;
  std::string signature;
};

absl::StatusOr<Json> ReadObject(std::string_view text) {
  const std::optional<std::string> bytes = DecodeBase64Url(text);
  Json object = bytes ? Json::parse(*bytes, nullptr, false) : Json();
  return object.is_object() ? absl::StatusOr<Json>(std::move(object)) : Refused("not a JWT");
}

absl::StatusOr<TokenParts> Take(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t second = token.find('.', first + 1);
  if (token.size() > kMostTokenBytes || first == std::string_view::npos ||
      second == std::string_view::npos) {
    return Refused("not a JWT");
  }
  TokenParts parts;
  parts.signed_text = token.substr(0, second);
  parts.header = token.substr(0, first);
  parts.claims = token.substr(first + 1, second - first - 1);
  std::optional<std::string> signature = DecodeBase64Url(token.substr(second + 1));
  if (!signature || signature->empty()) {
    return Refused("not a JWT");
  }
  parts.signature = *std::move(signature);
  return parts;
}

// Text, where `object` is one that has it as a member; else empty.
std::string TextOf(const Json* object, const char* name) {
  if (object == nullptr || !object->is_object()) {
    return "";
  }
  const auto found = object->find(name);
  return found != object->end() && found->is_string() ? found->get<std::string>() : "";
}

const Json* MemberOf(const Json* object, const char* name) {
  if (object == nullptr || !object->is_object()) {
    return nullptr;
  }
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

// From the two numbers end to end, of tokens, to what OpenSSL reads; empty where it is not that.
std::string CurveSignature(const std::string& numbers) {
  if (numbers.size() != 2 * kCurveNumberBytes) {
    return "";
  }
  const auto* const bytes = reinterpret_cast<const unsigned char*>(numbers.data());
  const Signature signature(ECDSA_SIG_new());
  BIGNUM* const r = BN_bin2bn(bytes, kCurveNumberBytes, nullptr);
  BIGNUM* const s = BN_bin2bn(bytes + kCurveNumberBytes, kCurveNumberBytes, nullptr);
  if (signature == nullptr || ECDSA_SIG_set0(signature.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    return "";
  }
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &der);
  std::string text(reinterpret_cast<const char*>(der), static_cast<std::size_t>(std::max(size, 0)));
  OPENSSL_free(der);
  return text;
}

bool IsSigned(const TokenParts& parts, const JsonWebKeys::Key& key) {
  const std::string signature = key.algorithm == JsonWebKeys::Algorithm::kEs256
                                    ? CurveSignature(parts.signature)
                                    : parts.signature;
  const Digest digest(EVP_MD_CTX_new());
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  const bool verified =
      digest != nullptr &&
      EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.key.get()) == 1 &&
      EVP_DigestVerify(digest.get(),
                       bytes(signature),
                       signature.size(),
                       bytes(parts.signed_text),
                       parts.signed_text.size()) == 1;
  ERR_clear_error();
  return verified;
}

absl::Status CheckSignature(const TokenParts& parts, const JsonWebKeys& keys) {
  ADAMANT_ASSIGN_OR_RETURN(const Json header, ReadObject(parts.header));
  if (header.contains("crit")) {
    return Refused("extensions that are not known here");
  }
  const std::string algorithm = TextOf(&header, "alg");
  if (algorithm != "RS256" && algorithm != "ES256") {
    return Refused("signed by another algorithm than RS256 or ES256");
  }
  const JsonWebKeys::Key* const key = keys.Find(TextOf(&header, "kid"));
  if (key == nullptr) {
    return absl::NotFoundError("token: signed by a key that is not known");
  }
  const bool fits = (key->algorithm == JsonWebKeys::Algorithm::kRs256) == (algorithm == "RS256");
  return fits && IsSigned(parts, *key) ? absl::OkStatus() : Refused("wrong signature");
}

bool IsFor(const Json& claims, const std::string& audience) {
  const Json* const named = MemberOf(&claims, "aud");
  if (named == nullptr || !named->is_array()) {
    return named != nullptr && named->is_string() && *named == audience;
  }
  return std::ranges::any_of(*named, [&](const Json& each) { return each == audience; });
}

// Seconds since 1970; nothing where it is no whole number of this millennium.
std::optional<WallTime> TimeOf(const Json& claims, const char* name) {
  constexpr std::int64_t kMostSeconds = 32'503'680'000;  // the year 3000
  const Json* const time = MemberOf(&claims, name);
  if (time == nullptr || !time->is_number_integer()) {
    return std::nullopt;
  }
  const auto seconds = time->is_number_unsigned()
                           ? time->get<std::uint64_t>()
                           : static_cast<std::uint64_t>(time->get<std::int64_t>());
  return seconds <= kMostSeconds
             ? std::optional(std::chrono::system_clock::from_time_t(static_cast<time_t>(seconds)))
             : std::nullopt;
}

}  // namespace

TokenVerifier::TokenVerifier(Wanted wanted) : wanted_(std::move(wanted)) {}

absl::StatusOr<PodToken> TokenVerifier::Verify(std::string_view token,
                                               const JsonWebKeys& keys,
                                               WallTime now) const {
  ADAMANT_ASSIGN_OR_RETURN(const TokenParts parts, Take(token));
  ADAMANT_RETURN_IF_ERROR(CheckSignature(parts, keys));
  ADAMANT_ASSIGN_OR_RETURN(const Json claims, ReadObject(parts.claims));
  if (TextOf(&claims, "iss") != wanted_.issuer) {
    return Refused("of another issuer");
  }
  if (!IsFor(claims, wanted_.audience)) {
    return Refused("for another audience");
  }
  const std::optional<WallTime> expires = TimeOf(claims, "exp");
  const std::optional<WallTime> begins = TimeOf(claims, "nbf");
  if (!expires || (claims.contains("nbf") && !begins)) {
    return Refused("without times");
  }
  if (now >= *expires + wanted_.skew || (begins && now < *begins - wanted_.skew)) {
    return Refused("expired, or not valid yet");
  }
  const Json* const cluster = MemberOf(&claims, "kubernetes.io");
  const Json* const pod = MemberOf(cluster, "pod");
  PodToken read{.name_space = TextOf(cluster, "namespace"),
                .pod_name = TextOf(pod, "name"),
                .pod_uid = TextOf(pod, "uid"),
                .service_account = TextOf(MemberOf(cluster, "serviceaccount"), "name"),
                .expires = *expires};
  const bool is_whole = !read.name_space.empty() && !read.pod_name.empty() &&
                        !read.pod_uid.empty() && !read.service_account.empty();
  return is_whole ? absl::StatusOr<PodToken>(std::move(read)) : Refused("not of a pod");
}

}  // namespace adamant::security
