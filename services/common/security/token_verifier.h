#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/security/certificate.h"
#include "services/common/security/json_web_keys.h"

namespace adamant::security {

/// The most bytes of a token.
inline constexpr std::size_t kMostTokenBytes = 8192;

/// Content of a token: the pod that the kubelet has projected it into.
struct PodToken {
  std::string name_space;
  std::string pod_name;
  std::string pod_uid;
  std::string service_account;
  WallTime expires;
};

/// Checks tokens of a cluster's service accounts (JWT, RFC 7519) without asking the cluster.
/// Threads: any.
class TokenVerifier {
 public:
  struct Wanted {
    std::string issuer;             ///< of the cluster: claim `iss`
    std::string audience;           ///< that the token is for: among `aud`
    std::chrono::seconds skew{30};  ///< by which clocks may differ
  };

  explicit TokenVerifier(Wanted wanted);

  /// Reads a token that one of `keys` has signed, and that is valid `now`. The only algorithms are
  /// RS256 and ES256: that of the key counts.
  /// Errors: NotFound for the name of a key that is not among `keys`, which may be old; else
  /// Unauthenticated with a reason, without the token.
  [[nodiscard]] absl::StatusOr<PodToken> Verify(std::string_view token,
                                                const JsonWebKeys& keys,
                                                WallTime now) const;

 private:
  const Wanted wanted_;
};

}  // namespace adamant::security
