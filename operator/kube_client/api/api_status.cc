#include "operator/kube_client/api/api_status.h"

#include <nlohmann/json.hpp>
#include <string>

namespace adamant::kube {
namespace {

constexpr std::size_t kMaxQuotedBytes = 200;

// Where the words begin in a message of "POST /api/v1/pods: words"; 0: it has no such beginning.
// No target holds a blank.
std::size_t BeginOfWords(std::string_view message) {
  constexpr std::string_view kEnd = ": ";
  for (const std::string_view begin : {"GET /", "POST /", "PUT /", "PATCH /", "DELETE /"}) {
    const std::size_t end = message.find(kEnd);
    if (message.starts_with(begin) && end != std::string_view::npos &&
        message.find(' ', begin.size()) > end) {
      return end + kEnd.size();
    }
  }
  return 0;
}

absl::StatusCode CodeOf(int http, std::string_view reason) {
  switch (http) {
    case 400:
    case 413:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 405:
    case 406:
    case 415:
      return absl::StatusCode::kUnimplemented;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                       : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return http >= 500 && http <= 599 ? absl::StatusCode::kUnavailable
                                        : absl::StatusCode::kUnknown;
  }
}

// The API's message names the fields that it refuses for most kinds; the causes always do.
std::string MessageOf(const Json& status) {
  std::string message = StringAt(status, {"message"}, StringAt(status, {"reason"}));
  const Json* causes = Find(status, {"details", "causes"});
  if (causes == nullptr || !causes->is_array()) {
    return message;
  }
  for (const Json& cause : *causes) {
    const std::string field = StringAt(cause, {"field"});
    const std::string text = StringAt(cause, {"message"});
    if (message.find(field) == std::string::npos || message.find(text) == std::string::npos) {
      message.append("; ").append(field).append(": ").append(text);
    }
  }
  return message;
}

}  // namespace

absl::Status StatusOf(const HttpResponse& response, std::string_view what) {
  if (response.status >= 200 && response.status <= 299) {
    return absl::OkStatus();
  }
  const absl::StatusOr<Json> body = ParseJson(response.body);
  const bool is_status = body.ok() && StringAt(*body, {"kind"}) == "Status";
  // What is not the API's own stems from a proxy or a load balancer on the way.
  const std::string message = is_status ? MessageOf(*body)
                                        : "HTTP " + std::to_string(response.status) + ": " +
                                              response.body.substr(0, kMaxQuotedBytes);
  return {CodeOf(response.status, is_status ? StringAt(*body, {"reason"}) : ""),
          std::string(what) + ": " + message};
}

absl::Status StatusOfErrorEvent(const Json& status, std::string_view what) {
  const auto http = static_cast<int>(IntAt(status, {"code"}));
  absl::StatusCode code = CodeOf(http, StringAt(status, {"reason"}));
  if (http >= 500) {
    code = absl::StatusCode::kInternal;
  }
  return {code, std::string(what) + ": " + MessageOf(status)};
}

bool IsAnswer(const absl::Status& status) {
  const bool may_be_silence = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  return !absl::IsCancelled(status) &&
         (!may_be_silence || BeginOfWords(std::string(status.message())) > 0);
}

std::string WordsOf(const absl::Status& status) {
  std::string message(status.message());
  return message.erase(0, BeginOfWords(message));
}

}  // namespace adamant::kube
