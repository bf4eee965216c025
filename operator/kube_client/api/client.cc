#include "operator/kube_client/api/client.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/api/api_status.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr int kPageObjects = 500;

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

// "&labelSelector=…&fieldSelector=…", as far as they are given.
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

}  // namespace

Client::Client(Transport& transport,
               const Clock& clock,
               Sleeper& sleeper,
               const ClientOptions& options)
    : sender_(transport, clock, sleeper, options) {}

Client Client::With(Cancellation cancellation) const {
  Client copy = *this;
  copy.sender_.set_cancellation(std::move(cancellation));
  return copy;
}

Client Client::With(std::chrono::milliseconds timeout) const {
  Client copy = *this;
  copy.sender_.set_timeout(timeout);
  return copy;
}

Client Client::WithoutRetries() const {
  Client copy = *this;
  copy.sender_.set_max_retries(0);
  return copy;
}

Client Client::With(std::function<void()> meanwhile) const {
  Client copy = *this;
  copy.sender_.set_meanwhile(std::move(meanwhile));
  return copy;
}

Client Client::WithWarnings(WarningSink sink) const {
  Client copy = *this;
  copy.sender_.set_warnings(std::move(sink));
  return copy;
}

absl::StatusOr<Json> Client::SendForJson(const ApiRequest& request) const {
  ADAMANT_ASSIGN_OR_RETURN(const HttpResponse response, sender_.Send(request));
  absl::StatusOr<Json> json = ParseJson(response.body);
  if (!json.ok()) {
    return absl::DataLossError(request.target + ": the answer is " +
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

absl::StatusOr<std::string> Client::ListPages(const Resource& resource,
                                              const Selection& selection,
                                              bool paged,
                                              const ListReader& reader) const {
  ADAMANT_ASSIGN_OR_RETURN(const std::string path, CollectionPath(resource, selection.ns));
  const std::string first =
      path + "?limit=" + std::to_string(paged ? kPageObjects : 0) + SelectionQuery(selection);
  reader.begin();
  std::string target = first;
  while (true) {
    ADAMANT_ASSIGN_OR_RETURN(Json page, SendForJson({.method = "GET", .target = target}));
    const auto items = page.find("items");
    if (items == page.end() || !(items->is_array() || items->is_null())) {
      return absl::DataLossError(path + ": the answer is no list");
    }
    for (Json& object : *items) {
      reader.object(object);
    }
    const std::string rest = StringAt(page, {"metadata", "continue"});
    if (rest.empty()) {
      return ResourceVersionOf(page);
    }
    target = first + "&continue=" + PercentEncode(rest);
  }
}

absl::StatusOr<std::string> Client::List(const Resource& resource,
                                         const Selection& selection,
                                         const ListReader& reader) const {
  absl::StatusOr<std::string> version = ListPages(resource, selection, true, reader);
  if (absl::IsOutOfRange(version.status())) {
    return ListPages(resource, selection, false, reader);
  }
  return version;
}

absl::StatusOr<std::vector<Json>> Client::List(const Resource& resource,
                                               const Selection& selection) const {
  std::vector<Json> objects;
  const ListReader reader{
      .begin = [&objects] { objects.clear(); },
      .object = [&objects](Json& object) { objects.push_back(std::move(object)); }};
  ADAMANT_RETURN_IF_ERROR(List(resource, selection, reader).status());
  return objects;
}

absl::Status Client::Watch(const Resource& resource,
                           const Selection& selection,
                           const WatchOptions& options,
                           const WatchReader& reader) const {
  ADAMANT_ASSIGN_OR_RETURN(std::string target, CollectionPath(resource, selection.ns));
  const std::string what = "watch of " + target;
  target += "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" +
            std::to_string(options.lifetime.count()) + SelectionQuery(selection);
  if (!options.resource_version.empty()) {
    target += "&resourceVersion=" + PercentEncode(options.resource_version);
  }
  if (options.initial_events) {
    target += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  }
  EventLines lines(what, reader);
  const absl::StatusOr<HttpResponse> response =
      sender_.Stream({.method = "GET", .target = std::move(target)},
                     options.idle,
                     [&lines](std::string_view line) { return lines.Take(line); });
  ADAMANT_RETURN_IF_ERROR(lines.status());
  ADAMANT_RETURN_IF_ERROR(response.status());
  sender_.WaitAsAsked(*response);
  return StatusOf(*response, what);
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
  return sender_
      .Send({.method = "DELETE",
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
  return sender_
      .Send({.method = "DELETE",
             .target = std::move(path),
             .body = DumpOptions(options),
             .content_type = std::string(kJsonType)})
      .status();
}

absl::StatusOr<std::string> Client::GetRaw(std::string_view target) const {
  ADAMANT_ASSIGN_OR_RETURN(HttpResponse response,
                           sender_.Send({.method = "GET",
                                         .target = std::string(target),
                                         .accept = {}}));  // whatever it is, as a set of keys
  return std::move(response.body);
}

absl::Status Client::ReadLines(std::string_view target,
                               std::chrono::milliseconds idle,
                               const std::function<bool(std::string_view line)>& on_line) const {
  const ApiRequest request{
      .method = "GET", .target = std::string(target), .accept = {}};  // it is text
  ADAMANT_ASSIGN_OR_RETURN(const HttpResponse response, sender_.Stream(request, idle, on_line));
  return StatusOf(response, "GET " + std::string(target));
}

}  // namespace adamant::kube
