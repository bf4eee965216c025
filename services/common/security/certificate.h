#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/security/peer_identity.h"
#include "services/common/security/private_key.h"

namespace adamant::security {

using WallTime = std::chrono::system_clock::time_point;

/// The most roots that are trusted at a time, and the most certificates of a chain.
inline constexpr std::size_t kMostRoots = 4;
inline constexpr std::size_t kMostChain = 4;

/// Content of a process's certificate.
struct CertificateContent {
  PeerIdentity identity;  ///< whom it is for
  WallTime not_before;    ///< it begins
  WallTime not_after;     ///< it ends
};

/// Reads the first certificate of a chain (PEM). Does not ask who signed it.
/// Errors: InvalidArgument where there is none, or where its only subject alternative name is not
/// an identity.
absl::StatusOr<CertificateContent> ReadCertificate(std::string_view chain);

/// Reads the first certificate of a chain, if one of `roots` (PEM) leads to it and it is valid
/// `now`, for both ends of a connection.
/// Errors: InvalidArgument as ReadCertificate, also for roots; Unauthenticated with the reason.
absl::StatusOr<CertificateContent> VerifyCertificate(std::string_view chain,
                                                     std::string_view roots,
                                                     WallTime now);

/// Checks that the first certificate of a chain is that of `key`. Errors: InvalidArgument.
absl::Status CheckKey(std::string_view chain, const PrivateKey& key);

/// Checks that these are roots that can be trusted, one to kMostRoots. Errors: InvalidArgument.
absl::Status CheckRoots(std::string_view roots);

}  // namespace adamant::security
