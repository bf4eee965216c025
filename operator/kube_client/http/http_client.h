#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube_client/auth/config.h"
#include "operator/kube_client/auth/tls_context.h"
#include "operator/kube_client/base/transport.h"

namespace adamant::kube {

/// One request under way; ended early by its destructor. What an HTTP library must do for
/// HttpTransport. Calls return when cancelled or at the deadline, whatever the library does.
/// Threads: one, but Cancel any.
class HttpCall {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~HttpCall() = default;

  /// The response without its body. Errors: Unavailable, with the library's reason; NotFound if
  /// no connection could be made; DeadlineExceeded; Cancelled; Aborted if the connection was
  /// of no use and nothing was sent.
  virtual absl::StatusOr<HttpResponse> WaitForHead(Deadline deadline) = 0;

  /// After the head: the next bytes of the body as they arrive, valid until the next call; none at
  /// its end. Errors: as WaitForHead, but Aborted.
  virtual absl::StatusOr<std::string_view> WaitForPiece(Deadline deadline) = 0;

  /// Makes the calls above return Cancelled.
  virtual void Cancel() = 0;
};

/// Connections to one server. Threads: any. Calls may outlive it.
class HttpClient {
 public:
  virtual ~HttpClient() = default;

  /// Errors: InvalidArgument for a request that cannot be sent.
  virtual absl::StatusOr<std::unique_ptr<HttpCall>> Start(const HttpRequest& request) = 0;
};

/// Makes a client; `tls` is null for a server without TLS.
using HttpClientFactory = std::function<absl::StatusOr<std::unique_ptr<HttpClient>>(
    const Endpoint& server, const std::shared_ptr<const TlsContext>& tls)>;

}  // namespace adamant::kube
