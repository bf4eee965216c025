#include "operator/kube_client/http/metered_transport.h"

namespace adamant::kube {
namespace {

int CodeOf(const absl::StatusOr<HttpResponse>& response) {
  return response.ok() ? response->status : 0;
}

}  // namespace

absl::StatusOr<HttpResponse> MeteredTransport::Send(const HttpRequest& request,
                                                    const Cancellation& cancellation) {
  const Clock::TimePoint begin = clock_.Now();
  absl::StatusOr<HttpResponse> response = transport_.Send(request, cancellation);
  observer_.OnRequest(request, CodeOf(response), /*stream=*/false, clock_.Now() - begin);
  return response;
}

absl::StatusOr<HttpResponse> MeteredTransport::Stream(
    const HttpRequest& request,
    std::chrono::milliseconds idle,
    const std::function<bool(std::string_view line)>& on_line,
    const Cancellation& cancellation) {
  const Clock::TimePoint begin = clock_.Now();
  absl::StatusOr<HttpResponse> response = transport_.Stream(request, idle, on_line, cancellation);
  observer_.OnRequest(request, CodeOf(response), /*stream=*/true, clock_.Now() - begin);
  return response;
}

}  // namespace adamant::kube
