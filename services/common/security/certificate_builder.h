#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/security/certificate.h"
#include "services/common/security/peer_identity.h"
#include "services/common/security/private_key.h"

// How certificates look: made by CertificateAuthority, which decides for whom.
namespace adamant::security {

struct Validity {
  WallTime begin;  ///< as its maker has it; the certificate begins five minutes before
  WallTime end;
};

/// Signer of a certificate: the first certificate of `certificate` (PEM).
struct Issuer {
  std::string_view certificate;
  const PrivateKey& key;
};

/// Returns a root as PEM, which may sign leaves alone. Errors: Internal.
absl::StatusOr<std::string> BuildRoot(const PrivateKey& key, const Validity& validity);

/// Returns a leaf as PEM, for both ends of a connection. Errors: Internal; InvalidArgument for an
/// issuer that cannot be read.
absl::StatusOr<std::string> BuildLeaf(const std::shared_ptr<evp_pkey_st>& key,
                                      const PeerIdentity& identity,
                                      const Validity& validity,
                                      const Issuer& issuer);

/// Checks that the first certificate of `chain` may sign others and is that of `key`.
/// Errors: InvalidArgument.
absl::Status CheckSigner(std::string_view chain, const PrivateKey& key);

/// Checks that the last certificate of `chain` is signed by one of `roots`. Errors:
/// InvalidArgument; as CheckRoots.
absl::Status CheckLeads(std::string_view roots, std::string_view chain);

/// Returns certificates as ToPem writes them, without anything between. Errors: InvalidArgument,
/// also for more than `most`.
absl::StatusOr<std::string> Rewrite(std::string_view pem, std::size_t most);

/// Returns when the first certificate of `chain` ends. Errors: InvalidArgument.
absl::StatusOr<WallTime> EndOf(std::string_view chain);

}  // namespace adamant::security
