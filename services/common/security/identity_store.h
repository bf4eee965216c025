#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "services/common/base/mutex.h"
#include "services/common/security/certificate.h"
#include "services/common/security/peer_identity.h"
#include "services/common/security/private_key.h"

namespace adamant::security {

/// Proof of who a process is, and whom it trusts.
struct ProcessIdentity {
  CertificateContent content;  ///< what its certificate says
  std::string chain;           ///< PEM: its certificate first
  std::string key;             ///< PEM, of that certificate
  std::string roots;           ///< PEM: those that it trusts
  std::uint64_t version = 0;   ///< of this: rises with every change
};

/// The identity that a process has now: set at its start, replaced while connections use it.
/// Threads: any.
class IdentityStore {
 public:
  /// Replaces the certificate. Errors: as VerifyCertificate, of `now`; InvalidArgument for another
  /// key, or another process than before. Nothing is changed then.
  absl::Status Set(std::string chain, const PrivateKey& key, std::string roots, WallTime now);

  /// Replaces the roots alone. Errors: InvalidArgument for what are no certificates;
  /// FailedPrecondition before Set.
  absl::Status SetRoots(std::string roots);

  /// Returns what was set last; null: nothing yet.
  [[nodiscard]] std::shared_ptr<const ProcessIdentity> Get() const;

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const ProcessIdentity> identity_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::security
