#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "services/common/metrics/metrics.h"

// TLS handshakes that fail are no calls, and gRPC tells of them in its log alone.
namespace adamant::rpc {

enum class HandshakeFailure : std::uint8_t {
  kNoCertificate,  ///< at a server: the client has none
  kUntrusted,      ///< the other end's certificate is of another authority, or not valid now
  kNoTls,          ///< the other end does not speak TLS
  kOther,          ///< among them a version before 1.3, and what the other end did not like
};

/// Returns why a handshake failed, where a line of gRPC's log says that one has.
std::optional<HandshakeFailure> HandshakeFailureIn(std::string_view line);

/// Counts the handshakes that fail in this process, at either end of a connection. Not seen are
/// those that the other end breaks off, or never ends. Needs RouteGrpcLog. Of several the one made
/// last counts. Threads: any.
class FailedHandshakes {
 public:
  /// `registry` must outlive this.
  explicit FailedHandshakes(metrics::Registry& registry);
  ~FailedHandshakes();
  FailedHandshakes(const FailedHandshakes&) = delete;
  FailedHandshakes& operator=(const FailedHandshakes&) = delete;

  /// gRPC has logged this. Counts it where it tells of a handshake.
  static void OnLine(std::string_view line);

 private:
  std::map<HandshakeFailure, metrics::Counter> counters_;  // constant after construction
};

}  // namespace adamant::rpc
