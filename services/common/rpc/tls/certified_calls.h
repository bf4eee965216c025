#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/rpc/tls/call_expiry.h"
#include "services/common/security/certificate.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace adamant::rpc {

/// Calls of clients that have certificates, each of which ends a while after its certificate.
/// Threads: any; has one of its own.
class CertifiedCalls {
 public:
  /// One such call, while it lasts: the context that it came with must outlive it.
  class Call {
   public:
    Call(security::CertificateContent client, std::unique_ptr<CallExpiry::Place> place)
        : client_(std::move(client)), place_(std::move(place)) {}

    /// Returns what the certificate of the other end says.
    [[nodiscard]] const security::CertificateContent& client() const { return client_; }

   private:
    const security::CertificateContent client_;
    const std::unique_ptr<CallExpiry::Place> place_;
  };

  /// `grace`: as ServerSecurity::grace.
  explicit CertifiedCalls(std::chrono::seconds grace) : grace_(grace) {}

  /// Begins a call: what a handler of a generated service does first (methods of ours have it
  /// done). It is cancelled when its certificate has ended for too long. Null: it has no
  /// certificate. Errors: Unauthenticated where the certificate has ended for too long, on a
  /// connection that the client has kept.
  absl::StatusOr<std::unique_ptr<Call>> Enter(grpc::ServerContextBase& context);

 private:
  const std::chrono::seconds grace_;
  CallExpiry expiry_;
};

}  // namespace adamant::rpc
