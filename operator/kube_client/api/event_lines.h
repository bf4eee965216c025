#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "operator/kube_client/base/json.h"

namespace adamant::kube {

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };

/// Gets the events of a watch; false ends it.
using WatchReader = std::function<bool(WatchEventType type, Json& object)>;

/// Takes the lines of a watch until one of them ends it.
/// Threads: one.
class EventLines {
 public:
  /// `what` begins the messages of errors. Both must outlive this.
  EventLines(const std::string& what, const WatchReader& reader) : what_(what), reader_(reader) {}

  /// Gives the event in `line` to the reader. Returns false once there shall be no more lines: the
  /// reader says so, or status() has become an error.
  bool Take(std::string_view line);

  /// OutOfRange, Internal, …: an ERROR event, as StatusOfErrorEvent says. DataLoss: a line that is
  /// no event.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  bool Fail(absl::Status status);

  const std::string& what_;
  const WatchReader& reader_;
  absl::Status status_;
};

}  // namespace adamant::kube
