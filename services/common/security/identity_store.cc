#include "services/common/security/identity_store.h"

#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::security {

absl::Status IdentityStore::Set(std::string chain,
                                const PrivateKey& key,
                                std::string roots,
                                WallTime now) {
  auto identity = std::make_shared<ProcessIdentity>();
  ADAMANT_ASSIGN_OR_RETURN(identity->content, VerifyCertificate(chain, roots, now));
  ADAMANT_RETURN_IF_ERROR(CheckKey(chain, key));
  identity->chain = std::move(chain);
  identity->key = key.ToPem();
  identity->roots = std::move(roots);
  const MutexLock lock(mutex_);
  if (identity_ != nullptr && identity->content.identity != identity_->content.identity) {
    return absl::InvalidArgumentError("a certificate for another process");
  }
  identity->version = identity_ == nullptr ? 1 : identity_->version + 1;
  identity_ = std::move(identity);
  return absl::OkStatus();
}

absl::Status IdentityStore::SetRoots(std::string roots) {
  ADAMANT_RETURN_IF_ERROR(CheckRoots(roots));
  const MutexLock lock(mutex_);
  if (identity_ == nullptr) {
    return absl::FailedPreconditionError("there is no certificate yet");
  }
  auto identity = std::make_shared<ProcessIdentity>(*identity_);
  identity->roots = std::move(roots);
  ++identity->version;
  identity_ = std::move(identity);
  return absl::OkStatus();
}

std::shared_ptr<const ProcessIdentity> IdentityStore::Get() const {
  const MutexLock lock(mutex_);
  return identity_;
}

}  // namespace adamant::security
