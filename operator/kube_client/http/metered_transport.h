#pragma once

#include "operator/kube_client/base/transport.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Is told of every request. Threads: any.
class RequestObserver {
 public:
  virtual ~RequestObserver() = default;

  /// `code`: of HTTP; 0 if no answer came. `took`: until the answer's end; of a stream, which is
  /// told when it ends, as long as it lasted.
  virtual void OnRequest(const HttpRequest& request,
                         int code,
                         bool stream,
                         Clock::Duration took) = 0;
};

/// A transport that tells an observer what goes through it.
/// Threads: as the transport and the observer, and any where both allow it.
class MeteredTransport final : public Transport {
 public:
  /// All must outlive this.
  MeteredTransport(Transport& transport, RequestObserver& observer, const Clock& clock)
      : transport_(transport), observer_(observer), clock_(clock) {}

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request,
                                    const Cancellation& cancellation) override;
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request,
                                      std::chrono::milliseconds idle,
                                      const std::function<bool(std::string_view line)>& on_line,
                                      const Cancellation& cancellation) override;

 private:
  Transport& transport_;
  RequestObserver& observer_;
  const Clock& clock_;
};

}  // namespace adamant::kube
