#pragma once

#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/stream_guard.h"
#include "services/common/rpc/tls/certified_calls.h"
#include "services/common/security/peer_identity.h"

namespace grpc {
class ServerContext;
}  // namespace grpc

namespace adamant::rpc {

/// The methods of a server, as a gRPC service made by hand: generated ones parse and copy their
/// messages, and read the message of a unary call before anybody is asked. Here all calls are
/// streams to gRPC, which look the same on the wire and are read when they are let in.
/// Threads: any.
class MethodsService final : public grpc::Service {
 public:
  struct Options {
    std::vector<FrameMethod> frame_methods;
    std::vector<UnaryMethod> unary_methods;

    /// As ServerOptions::is_own_job. Set: all calls must name the job, before or in their first
    /// message, but that to the health service, which is one of the methods then.
    std::function<bool(std::string_view job)> is_own_job;

    /// As ServerSecurity::grace. None: clients have no certificates.
    std::optional<std::chrono::seconds> grace;

    std::function<void(std::string_view peer)> on_named;  ///< a peer has named the job
  };

  explicit MethodsService(Options options);

 private:
  using Streamer = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
  using Serve = std::function<absl::Status(grpc::ServerContext&, Streamer&)>;
  class ServerStream;

  // What a call begins with; most of it until its first message has come.
  struct Entry {
    std::unique_ptr<StreamGuard::Place> place;   // null: the server has no guard
    std::unique_ptr<CertifiedCalls::Call> call;  // null: its client has no certificate

    // Whether the first message names the job; null: the call has named it.
    std::function<absl::Status(std::string_view message)> identify;
  };

  void Add(const char* name, Serve serve);  // which gRPC does not copy
  absl::Status ServeFrames(const FrameMethod& method,
                           grpc::ServerContext& context,
                           Streamer& streamer);
  absl::Status ServeUnary(const UnaryMethod& method,
                          grpc::ServerContext& context,
                          Streamer& streamer);
  [[nodiscard]] static const security::PeerIdentity* ClientOf(const Entry& entry);
  absl::StatusOr<Entry> LetIn(const JobOf& job_of, grpc::ServerContext& context);

  const Options options_;

  // Constant after construction.
  std::optional<CertifiedCalls> certified_calls_;  // none: clients have no certificates
  std::optional<StreamGuard> guard_;               // none: all are let in
};

}  // namespace adamant::rpc
