#include "operator/kube_client/api/request_sender.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/api/warnings.h"
#include "services/common/base/backoff.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

// How long the server asks to wait before the request is sent again; only if it says that it has
// not acted on it.
std::optional<std::chrono::milliseconds> RetryAfter(const HttpResponse& response) {
  const auto header = response.headers.find("retry-after");
  if ((response.status != 429 && response.status != 503) || header == response.headers.end()) {
    return std::nullopt;
  }
  std::int64_t seconds = 0;
  const std::string& text = header->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  // The API only ever sends seconds; a date is that of a proxy.
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0 ||
      seconds > std::chrono::seconds(std::chrono::hours(24)).count()) {
    return std::nullopt;
  }
  return std::chrono::seconds(seconds);
}

}  // namespace

RequestSender::RequestSender(Transport& transport,
                             const Clock& clock,
                             Sleeper& sleeper,
                             const ClientOptions& options)
    : transport_(&transport),
      sleeper_(&sleeper),
      options_(options),
      limiter_(std::make_shared<RateLimiter>(options_.rate, options_.burst, clock)) {}

void RequestSender::set_cancellation(Cancellation cancellation) {
  cancellation_ = std::move(cancellation);
}

void RequestSender::set_timeout(std::chrono::milliseconds timeout) { options_.timeout = timeout; }

void RequestSender::set_max_retries(int max_retries) { options_.max_retries = max_retries; }

void RequestSender::set_meanwhile(std::function<void()> meanwhile) {
  meanwhile_ = std::move(meanwhile);
}

void RequestSender::set_warnings(WarningSink warnings) { warnings_ = std::move(warnings); }

HttpRequest RequestSender::Dress(const ApiRequest& request) const {
  HttpRequest dressed;
  dressed.method = request.method;
  dressed.target = request.target;
  if (!request.accept.empty()) {
    dressed.headers.emplace("accept", request.accept);
  }
  if (!request.body.empty()) {
    dressed.headers.emplace("content-type", request.content_type);
  }
  dressed.body = request.body;
  dressed.timeout = options_.timeout;
  dressed.meanwhile = meanwhile_;
  return dressed;
}

absl::Status RequestSender::TakeToken() const {
  const Clock::Duration wait = limiter_->Reserve();
  if (wait > Clock::Duration::zero() && !sleeper_->Sleep(wait, cancellation_)) {
    return absl::CancelledError("cancelled before the request was sent");
  }
  return absl::OkStatus();
}

absl::StatusOr<HttpResponse> RequestSender::Send(const ApiRequest& request) const {
  const std::string what = std::string(request.method) + " " + request.target;
  const bool reads = request.method == "GET";
  const HttpRequest dressed = Dress(request);
  Backoff backoff({.initial = std::chrono::milliseconds(100), .max = std::chrono::seconds(2)},
                  options_.seed);
  for (int tries = 0;; ++tries) {
    ADAMANT_RETURN_IF_ERROR(TakeToken());
    absl::StatusOr<HttpResponse> response = transport_->Send(dressed, cancellation_);
    const absl::Status status = response.ok() ? StatusOf(*response, what) : response.status();
    if (response.ok()) {
      TellWarnings(*response);
    }
    if (status.ok()) {
      return response;
    }
    std::optional<std::chrono::milliseconds> wait;
    if (response.ok()) {
      wait = RetryAfter(*response);
    }
    if (!wait.has_value() && reads && absl::IsUnavailable(status)) {
      wait = backoff.Next();
    }
    if (!wait.has_value() || *wait > options_.max_retry_after || tries >= options_.max_retries) {
      return status;
    }
    if (!sleeper_->Sleep(*wait, cancellation_)) {
      return absl::CancelledError(what + ": cancelled");
    }
  }
}

void RequestSender::TellWarnings(const HttpResponse& response) const {
  const auto header = response.headers.find("warning");
  if (warnings_ && header != response.headers.end()) {
    for (const std::string& warning : ParseWarnings(header->second)) {
      warnings_(warning);
    }
  }
}

absl::StatusOr<HttpResponse> RequestSender::Stream(
    const ApiRequest& request,
    std::chrono::milliseconds idle,
    const std::function<bool(std::string_view line)>& on_line) const {
  ADAMANT_RETURN_IF_ERROR(TakeToken());
  return transport_->Stream(Dress(request), idle, on_line, cancellation_);
}

void RequestSender::WaitAsAsked(const HttpResponse& response) const {
  if (const auto wait = RetryAfter(response); wait.has_value()) {
    sleeper_->Sleep(std::min(*wait, options_.max_retry_after), cancellation_);
  }
}

}  // namespace adamant::kube
