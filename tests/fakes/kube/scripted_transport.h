#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "operator/kube_client/base/transport.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// What a ScriptedTransport does with a request.
struct ScriptedReply {
  HttpResponse response = {.status = 200, .headers = {}, .body = {}};
  std::vector<std::string> lines = {};    ///< of a stream
  absl::Status error = absl::OkStatus();  ///< the transport's: after the lines
  std::function<void()> on_arrival = {};  ///< if given, called first
};

/// A reply with a body.
ScriptedReply Answer(int status, std::string body = "{}", Headers headers = {});

/// A reply as the API words its errors.
ScriptedReply Refusal(int status, const std::string& reason, const std::string& message = "no");

/// A stream of these lines; it then ends, or with an error.
ScriptedReply Lines(std::vector<std::string> lines, absl::Status error = absl::OkStatus());

/// A request that fails without an answer.
ScriptedReply Broken(absl::Status error = absl::UnavailableError("connection refused"));

/// A server that knows in advance what it will be asked, and what it answers. Fails the test when
/// it is asked for something else.
/// Threads: any.
class ScriptedTransport final : public Transport {
 public:
  /// The next request is `method` on a target that begins with `target`.
  void Expect(std::string method, std::string target, ScriptedReply reply);

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request,
                                    const Cancellation& cancellation) override;
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request,
                                      std::chrono::milliseconds idle,
                                      const std::function<bool(std::string_view line)>& on_line,
                                      const Cancellation& cancellation) override;

  /// All requests so far.
  [[nodiscard]] std::vector<HttpRequest> requests() const;

  /// How many requests are still expected.
  [[nodiscard]] std::size_t left() const;

 private:
  struct Step {
    std::string method;
    std::string target;
    ScriptedReply reply;
  };

  ScriptedReply Take(const HttpRequest& request, const Cancellation& cancellation);

  mutable Mutex mutex_;
  std::deque<Step> script_ ABSL_GUARDED_BY(mutex_);
  std::vector<HttpRequest> requests_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::kube
