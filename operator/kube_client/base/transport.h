#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace adamant::kube {

/// Header fields; names in lower case.
using Headers = std::map<std::string, std::string, std::less<>>;

struct HttpRequest {
  std::string method = "GET";
  std::string target;  ///< path and query, percent-encoded: "/api/v1/pods?limit=500"
  Headers headers = {};
  std::string body = {};
  std::chrono::milliseconds timeout{30'000};  ///< until the response's head; of Send: until its end
  /// If given, called some times a second by the thread that waits for the response's head.
  std::function<void()> meanwhile = {};
};

struct HttpResponse {
  int status = 0;  ///< 200; errors of HTTP are responses, not errors of the transport
  Headers headers = {};
  std::string body = {};
};

/// Ends requests early. Copies share one state. Threads: any.
class Cancellation {
 public:
  Cancellation();

  /// Ends the requests that were given this, and those that will be. Idempotent.
  void Cancel() const;
  [[nodiscard]] bool cancelled() const;

  /// Calls `act` once: when cancelled, on the thread that cancels, or at once if that has happened.
  /// Returns a guard, to be dropped outside `act`; once it is gone `act` will not be called and is
  /// not running.
  [[nodiscard]] std::shared_ptr<void> OnCancel(std::function<void()> act) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Carrier of requests to one API server: connections, TLS, credentials. Behind this interface
/// so that the HTTP library can be replaced, and so that tests can script a server.
/// Threads: any; calls wait.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Sends a request and waits for the whole response.
  /// Errors: Unavailable when no response came (refused, broken, TLS; the message names the
  /// server); DeadlineExceeded after `timeout`; Cancelled; ResourceExhausted for a body above the
  /// transport's limit; Unauthenticated when the credentials cannot be had.
  virtual absl::StatusOr<HttpResponse> Send(const HttpRequest& request,
                                            const Cancellation& cancellation) = 0;

  /// Sends a request and calls `on_line` with every line of the body as it arrives, without its
  /// end; false ends the stream. The response returned has the body only if the status is not 200.
  /// A stream on which nothing has arrived for `idle` ends with DeadlineExceeded. Errors: as Send;
  /// ResourceExhausted also for a line above the transport's limit. A last line without its end was
  /// cut off, and is not delivered.
  virtual absl::StatusOr<HttpResponse> Stream(
      const HttpRequest& request,
      std::chrono::milliseconds idle,
      const std::function<bool(std::string_view line)>& on_line,
      const Cancellation& cancellation) = 0;
};

}  // namespace adamant::kube
