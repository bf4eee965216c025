#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/rpc/frame.h"
#include "services/common/rpc/tls/server_security.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace adamant::rpc {

struct ServerOptions {
  /// Port 0: the kernel chooses. Or unix:PATH (IsUnixSocket): what is left there of an earlier
  /// socket is replaced. Nobody who may open it is a stranger, so that there is no Door.
  std::string address = "127.0.0.1:0";

  std::uint64_t max_message_bytes = std::uint64_t{4} << 20;  ///< larger messages are refused

  /// Not 0: bounds what all that is received may take, together; beyond it streams are cut. For
  /// servers of short messages.
  std::uint64_t max_memory_bytes = 0;

  /// Returns whether `job` is the server's own (OpenFrameStream). Set: calls that name another end
  /// before anything is read of them, and so do those that name none, unless their method has a
  /// JobOf. Others are held to StreamGuard's limits until they have said hello, and connections to
  /// Door's until one of their calls has named the job. Called on any thread.
  std::function<bool(std::string_view job)> is_own_job = {};

  /// Connections are held to Door's limits until Server::Admit: for services that ask for the job
  /// themselves. Implied by is_own_job.
  bool has_door = false;

  /// TLS, and who may call what; not of a Unix socket. None: plain text, and whoever reaches the
  /// port may call. A generated service also enters its calls in CertifiedCalls.
  std::optional<ServerSecurity> security = {};
};

/// The job that the first message of a call is for, as OpenFrameStream names it. Processes of
/// earlier states name it only there, and those of a running job stay when others are replaced.
using JobOf = std::function<std::string(std::string_view message)>;

/// A frame method to serve beside the generated services.
struct FrameMethod {
  std::string name;  ///< "/adamant.v1.ParameterServer/Exchange"
  FrameHandler handler;
  JobOf job_of = nullptr;  ///< of the first frame's header; null: no stream without a job
};

/// Client of a unary call. Valid during the call.
struct Caller {
  std::function<bool()> cancelled;                   ///< whether it has gone
  const security::PeerIdentity* identity = nullptr;  ///< who it is; null: a server without security
};

/// A method of one request and one reply to serve.
struct UnaryMethod {
  std::string name;  ///< "/adamant.v1.ParameterServer/GetRecord"
  std::uint64_t max_request_bytes = 0;

  /// Answers a serialised request by a serialised reply. Called on a thread of its own.
  std::function<absl::StatusOr<std::string>(const std::string& request, const Caller& caller)>
      handler;

  JobOf job_of = nullptr;  ///< of the request; null: no call without a job
};

/// A gRPC server: generated services, methods and the standard health service (SERVING while it
/// runs). Threads: Stop may be called from any thread, also more than once; the destructor stops.
class Server {
 public:
  virtual ~Server() = default;

  /// host:port with the port in use, or unix:PATH.
  [[nodiscard]] virtual const std::string& address() const = 0;

  /// The connection from `peer`, as gRPC calls it, is no stranger's any more. Nothing where there
  /// is no door.
  virtual void Admit(std::string_view peer) = 0;

  /// Refuses new calls, cancels open ones and waits until their handlers have returned.
  virtual void Stop() = 0;
};

/// Starts a server with at least one service or method. `services` are borrowed and must outlive
/// it; where is_own_job is set there are none, as nobody would be asked for the job. Errors:
/// InvalidArgument when the address is none; Unavailable when it cannot be bound. Both name it.
/// Where gRPC's threads cannot run the process ends (ExitForLack).
absl::StatusOr<std::unique_ptr<Server>> StartServer(const ServerOptions& options,
                                                    const std::vector<grpc::Service*>& services,
                                                    std::vector<FrameMethod> frame_methods,
                                                    std::vector<UnaryMethod> unary_methods = {});

}  // namespace adamant::rpc
