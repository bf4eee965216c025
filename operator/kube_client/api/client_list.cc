#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/api/client.h"
#include "operator/kube_client/api/client_call.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr int kPageObjects = 500;

std::optional<WatchEventType> TypeOf(std::string_view name) {
  if (name == "ADDED") {
    return WatchEventType::kAdded;
  }
  if (name == "MODIFIED") {
    return WatchEventType::kModified;
  }
  if (name == "DELETED") {
    return WatchEventType::kDeleted;
  }
  if (name == "BOOKMARK") {
    return WatchEventType::kBookmark;
  }
  return std::nullopt;
}

// Takes the lines of a watch until one of them ends it.
class EventLines {
 public:
  EventLines(const std::string& what, const WatchReader& reader) : what_(what), reader_(reader) {}

  bool Take(std::string_view line) {
    absl::StatusOr<Json> event = ParseJson(line);
    if (!event.ok()) {
      return Fail(
          absl::DataLossError(what_ + ": an event is " + std::string(event.status().message())));
    }
    const std::string name = StringAt(*event, {"type"});
    if (name == "ERROR") {
      return Fail(StatusOfErrorEvent(event->value("object", Json::object()), what_));
    }
    const std::optional<WatchEventType> type = TypeOf(name);
    const auto object = event->find("object");
    if (!type.has_value() || object == event->end() || !object->is_object()) {
      return Fail(absl::DataLossError(what_ + ": a line that is no event"));
    }
    return reader_(*type, *object);
  }

  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  bool Fail(absl::Status status) {
    status_ = std::move(status);
    return false;
  }

  const std::string& what_;
  const WatchReader& reader_;
  absl::Status status_;
};

}  // namespace

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
  ADAMANT_RETURN_IF_ERROR(TakeToken());
  EventLines lines(what, reader);
  const absl::StatusOr<HttpResponse> response = transport_->Stream(
      RequestOf({.method = "GET", .target = std::move(target)}),
      options.idle,
      [&lines](std::string_view line) { return lines.Take(line); },
      cancellation_);
  ADAMANT_RETURN_IF_ERROR(lines.status());
  ADAMANT_RETURN_IF_ERROR(response.status());
  if (const auto wait = RetryAfter(*response); wait.has_value()) {
    sleeper_->Sleep(std::min(*wait, options_.max_retry_after), cancellation_);
  }
  return StatusOf(*response, what);
}

absl::Status Client::ReadLines(std::string_view target,
                               std::chrono::milliseconds idle,
                               const std::function<bool(std::string_view line)>& on_line) const {
  ADAMANT_RETURN_IF_ERROR(TakeToken());
  HttpRequest request = RequestOf({.method = "GET", .target = std::string(target)});
  request.headers.erase("accept");  // it is text
  ADAMANT_ASSIGN_OR_RETURN(const HttpResponse response,
                           transport_->Stream(request, idle, on_line, cancellation_));
  return StatusOf(response, "GET " + std::string(target));
}

}  // namespace adamant::kube
