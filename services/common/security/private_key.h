#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct evp_pkey_st;

namespace adamant::security {

/// The most bytes of a certificate request.
inline constexpr std::size_t kMostRequestBytes = 4096;

/// A private key of the curve P-256, and what proves that one has it. Copies share it.
/// Threads: any.
class PrivateKey {
 public:
  /// Makes a new one, in memory alone. Errors: Internal, where the system has no random numbers.
  static absl::StatusOr<PrivateKey> Make();

  /// Reads a key as ToPem writes it (PKCS#8, not encrypted). Errors: InvalidArgument, without the
  /// text.
  static absl::StatusOr<PrivateKey> FromPem(std::string_view pem);

  [[nodiscard]] std::string ToPem() const;

  /// Returns a certificate request (PKCS#10, DER), which names nobody: who the certificate is for,
  /// its signer knows. Errors: Internal.
  [[nodiscard]] absl::StatusOr<std::string> MakeRequest() const;

  /// For the sources of this folder: the key as OpenSSL has it.
  [[nodiscard]] const std::shared_ptr<evp_pkey_st>& key() const { return key_; }

 private:
  explicit PrivateKey(std::shared_ptr<evp_pkey_st> key);

  std::shared_ptr<evp_pkey_st> key_;
};

/// Reads a certificate request: returns the public key that is to be signed, whose owner has made
/// it. Whatever else it asks for is passed over.
/// Errors: InvalidArgument for what is no request, is too long, is not signed by its own key, or of
/// another kind of key.
absl::StatusOr<std::shared_ptr<evp_pkey_st>> ReadRequest(std::string_view request);

}  // namespace adamant::security
