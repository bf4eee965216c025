#include "services/common/rpc/tls/certified_calls.h"

#include <grpcpp/server_context.h>

#include "services/common/rpc/tls/server_security.h"

namespace adamant::rpc {

absl::StatusOr<std::unique_ptr<CertifiedCalls::Call>> CertifiedCalls::Enter(
    grpc::ServerContextBase& context) {
  auto client = PeerOf(*context.auth_context());
  if (!client) {
    return nullptr;
  }
  const security::WallTime end = client->not_after + grace_;
  if (std::chrono::system_clock::now() >= end) {
    return absl::UnauthenticatedError("the certificate of this connection has ended");
  }
  return std::make_unique<Call>(*std::move(client),
                                expiry_.Watch(end, [&context] { context.TryCancel(); }));
}

}  // namespace adamant::rpc
