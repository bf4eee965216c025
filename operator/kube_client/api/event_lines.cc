#include "operator/kube_client/api/event_lines.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "operator/kube_client/api/api_status.h"

namespace adamant::kube {
namespace {

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

}  // namespace

bool EventLines::Take(std::string_view line) {
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

bool EventLines::Fail(absl::Status status) {
  status_ = std::move(status);
  return false;
}

}  // namespace adamant::kube
