#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "services/common/rpc/tls/channel_security.h"
#include "services/common/security/identity_store.h"
#include "services/common/security/peer_identity.h"

namespace adamant::rpc {

/// Security of the channels from a process of a job to its others: TLS if it has a certificate.
/// Copies share that. Threads: any.
class MemberSecurity {
 public:
  /// Plain text.
  MemberSecurity() = default;

  /// TLS. `identity` has a certificate before one of those below is called.
  explicit MemberSecurity(std::shared_ptr<const security::IdentityStore> identity)
      : identity_(std::move(identity)) {}

  /// Returns the security of channels to a process of the same job; null: plain text.
  [[nodiscard]] std::shared_ptr<const ChannelSecurity> To(
      security::Role role, std::optional<std::uint32_t> slot = std::nullopt) const;

  /// Returns the version of the identity: a channel from before it changed has an old certificate.
  [[nodiscard]] std::uint64_t version() const;

 private:
  std::shared_ptr<const security::IdentityStore> identity_;  // null: plain text
};

}  // namespace adamant::rpc
