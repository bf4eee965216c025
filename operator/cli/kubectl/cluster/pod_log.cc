#include "operator/cli/kubectl/cluster/pod_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/cli/kubectl/cluster/outage.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

constexpr char kContainer[] = "adamant";

absl::StatusOr<std::string> LogPath(const kube::ObjectKey& pod, const LogOptions& options) {
  ADAMANT_ASSIGN_OR_RETURN(std::string path, kube::ObjectPath(kube::kPods, pod, "log"));
  path += std::string("?container=") + kContainer;
  if (options.tail >= 0) {
    path += "&tailLines=" + std::to_string(options.tail);
  }
  return path;
}

bool WillPass(const absl::Status& status) {
  return status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

absl::Status ReadLog(const Session& session,
                     const kube::ObjectKey& pod,
                     const LogOptions& options,
                     const LineReader& on_line) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string path, LogPath(pod, options));
  return session.client.ReadLines(path, options.idle, on_line);
}

absl::Status FollowLog(const Session& session,
                       const kube::ObjectKey& pod,
                       const LogOptions& options,
                       const LineReader& on_line) {
  // Lines come with their times, by which those are known that an earlier connection has brought.
  std::string last;
  std::string before;  // as `last` was when the present connection began
  bool enough = false;
  Outage outage(session);
  const auto take = [&](std::string_view line) {
    outage.End();
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view time = line.substr(0, space);
    if (time <= before) {
      return true;
    }
    last = time;
    line.remove_prefix(std::min(space + 1, line.size()));
    enough = !on_line(line);
    return !enough;
  };
  while (true) {
    ADAMANT_ASSIGN_OR_RETURN(
        std::string path,
        LogPath(pod, {.tail = last.empty() ? options.tail : -1, .idle = options.idle}));
    path += "&follow=true&timestamps=true";
    if (!last.empty()) {
      path += "&sinceTime=" + kube::PercentEncode(last.substr(0, last.find('.')) + "Z");
    }
    before = last;
    const absl::Status status = session.client.ReadLines(path, options.idle, take);
    if (enough || absl::IsNotFound(status)) {
      return status;
    }
    const absl::StatusOr<Json> now = session.client.Get(kube::kPods, pod);
    if (status.ok() && now.ok() && HasEnded(*now)) {
      return absl::OkStatus();
    }
    if (WillPass(status) && now.ok()) {
      outage.End();
    }
    ADAMANT_RETURN_IF_ERROR(outage.Wait(WillPass(status) ? now.status() : status));
  }
}

}  // namespace adamant::kubectl
