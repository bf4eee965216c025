#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube_client/api/client_options.h"
#include "operator/kube_client/base/rate_limiter.h"
#include "operator/kube_client/base/sleeper.h"
#include "operator/kube_client/base/transport.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

inline constexpr std::string_view kJsonType = "application/json";

/// One request, before it is dressed up.
struct ApiRequest {
  std::string_view method;
  std::string target;                   ///< path and query, percent-encoded
  std::string body = {};                ///< empty: none
  std::string content_type = {};        ///< of the body
  std::string_view accept = kJsonType;  ///< empty: whatever it is
};

/// Is told of each warning that comes with an answer.
using WarningSink = std::function<void(const std::string& warning)>;

/// Sends requests to an API server, no faster than the options say, and again where that is safe: a
/// refusal that says when to come again is obeyed whatever the verb; reads are also repeated when
/// the connection broke or the server failed.
///
/// Errors: those of api_status.h and of the transport; Cancelled.
/// Threads: any; calls wait; but set_… only before others use it. Cheap to copy; copies share the
/// rate limit.
class RequestSender {
 public:
  /// All must outlive this and its copies.
  RequestSender(Transport& transport,
                const Clock& clock,
                Sleeper& sleeper,
                const ClientOptions& options);

  /// `cancellation` ends the requests.
  void set_cancellation(Cancellation cancellation);
  void set_timeout(std::chrono::milliseconds timeout);
  void set_max_retries(int max_retries);
  /// Called by threads that wait for an answer (HttpRequest::meanwhile).
  void set_meanwhile(std::function<void()> meanwhile);
  void set_warnings(WarningSink warnings);

  /// Sends `request` until it succeeds, or fails for good.
  absl::StatusOr<HttpResponse> Send(const ApiRequest& request) const;

  /// Sends `request` once and reads the answer line by line (Transport::Stream). A response that is
  /// an error of HTTP is returned.
  absl::StatusOr<HttpResponse> Stream(
      const ApiRequest& request,
      std::chrono::milliseconds idle,
      const std::function<bool(std::string_view line)>& on_line) const;

  /// Waits as long as `response` says if it says when to come again, but at most the longest that
  /// is waited for.
  void WaitAsAsked(const HttpResponse& response) const;

 private:
  [[nodiscard]] HttpRequest Dress(const ApiRequest& request) const;
  [[nodiscard]] absl::Status TakeToken() const;
  void TellWarnings(const HttpResponse& response) const;

  Transport* transport_;
  Sleeper* sleeper_;
  ClientOptions options_;
  Cancellation cancellation_;
  std::function<void()> meanwhile_;
  WarningSink warnings_;
  std::shared_ptr<RateLimiter> limiter_;
};

}  // namespace adamant::kube
