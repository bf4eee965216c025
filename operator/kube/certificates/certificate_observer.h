#pragma once

#include <cstdint>

#include "services/common/security/certificate.h"
#include "services/common/security/peer_identity.h"

namespace adamant::kube {

/// Is told of certificates. Calls must be quick. Threads: any.
class CertificateObserver {
 public:
  /// Reasons for which a certificate, or a call with one, is refused.
  enum class Refusal : std::uint8_t {
    kNoCertificate,
    kBadToken,   ///< not of this cluster, for another audience, expired
    kReplaced,   ///< of a process in whose place another one is
    kWrongJob,   ///< of no job, or of another
    kWrongRole,  ///< whose role may not do that, or is another
    kWrongSlot,  ///< of another slot
  };

  /// Certificates of the operators' own. What signs is a root, or the intermediate of an issuer.
  enum class Kind : std::uint8_t { kLeaf, kRoot, kIssuer };

  virtual ~CertificateObserver() = default;

  virtual void OnIssued(security::Role role) = 0;
  virtual void OnRefused(Refusal reason) = 0;
  virtual void OnEnd(Kind kind, security::WallTime end) = 0;
};

}  // namespace adamant::kube
