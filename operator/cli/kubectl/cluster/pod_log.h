#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "operator/cli/kubectl/cluster/session.h"
#include "operator/kube_client/api/resource.h"

// What a pod of a job has written to its standard output and error.
namespace adamant::kubectl {

using LineReader = std::function<bool(std::string_view line)>;  ///< false ends it

struct LogOptions {
  int tail = -1;                      ///< only so many last lines; -1: all
  std::chrono::milliseconds idle{0};  ///< silence after which the API is not waited for
};

/// The lines that there are. Errors: those of the client.
absl::Status ReadLog(const Session& session,
                     const kube::ObjectKey& pod,
                     const LogOptions& options,
                     const LineReader& on_line);

/// The lines that there are, and those that come, until the pod has ended. Where the connection
/// breaks it goes on after the last line that came.
/// Errors: NotFound: the pod is gone; Cancelled; those of the client, as Outage has them.
absl::Status FollowLog(const Session& session,
                       const kube::ObjectKey& pod,
                       const LogOptions& options,
                       const LineReader& on_line);

}  // namespace adamant::kubectl
