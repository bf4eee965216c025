#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "services/common/security/certificate.h"
#include "services/common/security/identity_store.h"
#include "services/common/security/peer_identity.h"

namespace grpc {
class AuthContext;
class ServerCredentials;
}  // namespace grpc

namespace adamant::rpc {

/// Call that was refused, for logs and counts. Views are valid during the call.
struct Refusal {
  std::string_view method;  ///< from outside: any text
  std::string_view peer;    ///< its identity; empty: it has none
  std::string_view why;     ///< for people
};

/// TLS 1.3 at a server, and who may call what there (security::Authorise).
struct ServerSecurity {
  /// Of this process: has a certificate already. Each handshake uses what it has then.
  std::shared_ptr<const security::IdentityStore> identity = {};

  /// Not empty: clients need no certificate, and the only method that they may call is this.
  std::string method_of_strangers = {};

  /// By which a call may outlive the certificate that it came with.
  std::chrono::seconds grace = std::chrono::hours(1);

  /// Called for each refused call, on any thread; must not wait. Null: nobody counts.
  std::function<void(const Refusal&)> on_refused = {};
};

/// Credentials for one listener of a server. Calls are refused before anything of them is read:
/// PermissionDenied, or Unauthenticated where the client has no identity.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecurity& security);

/// Returns who is at the other end of a call, by its certificate; nothing where it has none.
std::optional<security::CertificateContent> PeerOf(const grpc::AuthContext& context);

}  // namespace adamant::rpc
