#pragma once

#include <memory>
#include <string>

#include "services/common/security/expected_peer.h"
#include "services/common/security/identity_store.h"

namespace grpc {
class ChannelCredentials;
}  // namespace grpc

namespace adamant::rpc {

/// TLS 1.3 at a client.
struct ChannelSecurity {
  /// Of this process: has a certificate already. Null: it has none yet, and trusts `roots`.
  std::shared_ptr<const security::IdentityStore> identity = {};
  std::string roots = {};  ///< PEM; not used where there is an identity

  security::ExpectedPeer peer;  ///< whoever else answers is not talked to
};

/// Credentials for one channel, with the certificate of now: who keeps a channel for long makes
/// another one when the identity's version has changed.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const ChannelSecurity& security);

}  // namespace adamant::rpc
