#include "operator/kube_client/api/client.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/api/client_call.h"
#include "operator/kube_client/api/warnings.h"
#include "services/common/base/backoff.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr std::string_view kJsonType = "application/json";

std::string_view ContentType(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategicMerge:
      return "application/strategic-merge-patch+json";
    case PatchType::kJson:
      break;
  }
  return "application/json-patch+json";
}

std::string_view NameOf(Propagation propagation) {
  switch (propagation) {
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      break;
  }
  return "Orphan";
}

std::string DumpOptions(const DeleteOptions& options) {
  Json json = {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (!options.uid.empty()) {
    json["preconditions"]["uid"] = options.uid;
  }
  if (!options.resource_version.empty()) {
    json["preconditions"]["resourceVersion"] = options.resource_version;
  }
  if (options.grace_period.has_value()) {
    json["gracePeriodSeconds"] = options.grace_period->count();
  }
  if (options.propagation.has_value()) {
    json["propagationPolicy"] = NameOf(*options.propagation);
  }
  return DumpJson(json);
}

// An object names its kind itself; that of a subresource may be another one.
void FillInKind(const Resource& resource, std::string_view subresource, Json& object) {
  if (object.is_object() && (subresource.empty() || subresource == "status")) {
    object.emplace("apiVersion", resource.api_version());
    object.emplace("kind", resource.kind);
  }
}

}  // namespace

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

std::string SelectionQuery(const Selection& selection) {
  std::string query;
  if (!selection.label_selector.empty()) {
    query += "&labelSelector=" + PercentEncode(selection.label_selector);
  }
  if (!selection.field_selector.empty()) {
    query += "&fieldSelector=" + PercentEncode(selection.field_selector);
  }
  return query;
}

Client::Client(Transport& transport,
               const Clock& clock,
               Sleeper& sleeper,
               const ClientOptions& options)
    : transport_(&transport),
      sleeper_(&sleeper),
      options_(options),
      limiter_(std::make_shared<RateLimiter>(options_.rate, options_.burst, clock)) {}

Client Client::With(Cancellation cancellation) const {
  Client copy = *this;
  copy.cancellation_ = std::move(cancellation);
  return copy;
}

Client Client::With(std::chrono::milliseconds timeout) const {
  Client copy = *this;
  copy.options_.timeout = timeout;
  return copy;
}

Client Client::WithoutRetries() const {
  Client copy = *this;
  copy.options_.max_retries = 0;
  return copy;
}

Client Client::With(std::function<void()> meanwhile) const {
  Client copy = *this;
  copy.meanwhile_ = std::move(meanwhile);
  return copy;
}

Client Client::WithWarnings(WarningSink sink) const {
  Client copy = *this;
  copy.warnings_ = std::move(sink);
  return copy;
}

HttpRequest Client::RequestOf(const Call& call) const {
  HttpRequest request;
  request.method = call.method;
  request.target = call.target;
  request.headers = {{"accept", std::string(kJsonType)}};
  if (!call.body.empty()) {
    request.headers.emplace("content-type", call.content_type);
  }
  request.body = call.body;
  request.timeout = options_.timeout;
  request.meanwhile = meanwhile_;
  return request;
}

absl::Status Client::TakeToken() const {
  const Clock::Duration wait = limiter_->Reserve();
  if (wait > Clock::Duration::zero() && !sleeper_->Sleep(wait, cancellation_)) {
    return absl::CancelledError("cancelled before the request was sent");
  }
  return absl::OkStatus();
}

absl::StatusOr<HttpResponse> Client::Send(const Call& call) const {
  const std::string what = std::string(call.method) + " " + call.target;
  const bool reads = call.method == "GET";
  const HttpRequest request = RequestOf(call);
  Backoff backoff({.initial = std::chrono::milliseconds(100), .max = std::chrono::seconds(2)},
                  options_.seed);
  for (int tries = 0;; ++tries) {
    ADAMANT_RETURN_IF_ERROR(TakeToken());
    absl::StatusOr<HttpResponse> response = transport_->Send(request, cancellation_);
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

void Client::TellWarnings(const HttpResponse& response) const {
  const auto header = response.headers.find("warning");
  if (warnings_ && header != response.headers.end()) {
    for (const std::string& warning : ParseWarnings(header->second)) {
      warnings_(warning);
    }
  }
}

absl::StatusOr<Json> Client::SendForJson(const Call& call) const {
  ADAMANT_ASSIGN_OR_RETURN(const HttpResponse response, Send(call));
  absl::StatusOr<Json> json = ParseJson(response.body);
  if (!json.ok()) {
    return absl::DataLossError(call.target + ": the answer is " +
                               std::string(json.status().message()));
  }
  return json;
}

absl::StatusOr<Json> Client::Get(const Resource& resource,
                                 const ObjectKey& key,
                                 std::string_view subresource) const {
  ADAMANT_ASSIGN_OR_RETURN(std::string path, ObjectPath(resource, key, subresource));
  return SendForJson({.method = "GET", .target = std::move(path)});
}

absl::StatusOr<Json> Client::Create(const Resource& resource,
                                    Json object,
                                    const CreateOptions& options) const {
  FillInKind(resource, options.subresource, object);
  const ObjectKey key = KeyOf(object);
  std::string path;
  if (options.subresource.empty()) {
    if (resource.namespaced && key.ns.empty()) {
      return absl::InvalidArgumentError(std::string(resource.kind) +
                                        ": metadata.namespace is needed to create one");
    }
    ADAMANT_ASSIGN_OR_RETURN(path, CollectionPath(resource, key.ns));
  } else {
    ADAMANT_ASSIGN_OR_RETURN(path, ObjectPath(resource, key, options.subresource));
  }
  std::string query = options.strict ? "&fieldValidation=Strict" : "";
  query += options.dry_run ? "&dryRun=All" : "";
  if (!query.empty()) {
    path += "?" + query.substr(1);
  }
  return SendForJson({.method = "POST",
                      .target = std::move(path),
                      .body = DumpJson(object),
                      .content_type = std::string(kJsonType)});
}

absl::StatusOr<Json> Client::Update(const Resource& resource,
                                    Json object,
                                    std::string_view subresource) const {
  FillInKind(resource, subresource, object);
  ADAMANT_ASSIGN_OR_RETURN(std::string path, ObjectPath(resource, KeyOf(object), subresource));
  return SendForJson({.method = "PUT",
                      .target = std::move(path),
                      .body = DumpJson(object),
                      .content_type = std::string(kJsonType)});
}

absl::StatusOr<Json> Client::Patch(const Resource& resource,
                                   const ObjectKey& key,
                                   PatchType type,
                                   const Json& patch,
                                   std::string_view subresource) const {
  ADAMANT_ASSIGN_OR_RETURN(std::string path, ObjectPath(resource, key, subresource));
  return SendForJson({.method = "PATCH",
                      .target = std::move(path),
                      .body = DumpJson(patch),
                      .content_type = std::string(ContentType(type))});
}

absl::StatusOr<Json> Client::Apply(const Resource& resource,
                                   Json object,
                                   const ApplyOptions& options) const {
  FillInKind(resource, options.subresource, object);
  ADAMANT_ASSIGN_OR_RETURN(std::string path,
                           ObjectPath(resource, KeyOf(object), options.subresource));
  path += "?fieldManager=" + PercentEncode(options.field_manager);
  path += options.force ? "&force=true" : "";
  return SendForJson({.method = "PATCH",
                      .target = std::move(path),
                      .body = DumpJson(object),
                      .content_type = "application/apply-patch+yaml"});
}

absl::Status Client::Delete(const Resource& resource,
                            const ObjectKey& key,
                            const DeleteOptions& options) const {
  ADAMANT_ASSIGN_OR_RETURN(std::string path, ObjectPath(resource, key));
  return Send({.method = "DELETE",
               .target = std::move(path),
               .body = DumpOptions(options),
               .content_type = std::string(kJsonType)})
      .status();
}

absl::Status Client::DeleteCollection(const Resource& resource,
                                      const Selection& selection,
                                      const DeleteOptions& options) const {
  if (resource.namespaced && selection.ns.empty()) {
    return absl::InvalidArgumentError("a collection is deleted one namespace at a time");
  }
  ADAMANT_ASSIGN_OR_RETURN(std::string path, CollectionPath(resource, selection.ns));
  const std::string query = SelectionQuery(selection);
  if (!query.empty()) {
    path += "?" + query.substr(1);
  }
  return Send({.method = "DELETE",
               .target = std::move(path),
               .body = DumpOptions(options),
               .content_type = std::string(kJsonType)})
      .status();
}

absl::StatusOr<std::string> Client::GetRaw(std::string_view target) const {
  ADAMANT_ASSIGN_OR_RETURN(HttpResponse response,
                           Send({.method = "GET", .target = std::string(target)}));
  return std::move(response.body);
}

}  // namespace adamant::kube
