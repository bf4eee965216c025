#include "operator/cli/model_warning.h"

#include "absl/status/statusor.h"
#include "operator/cli/display.h"
#include "operator/local/run_status.h"

namespace adamant::cli {

std::string ModelWarning(const std::string& run_dir) {
  const absl::StatusOr<local::RunStatus> status = local::ReadRunStatus(run_dir);
  if (!status.ok()) {
    return "";
  }
  const std::string& message = status->report.message;
  if (status->report.phase == controller::Phase::kSucceeded && IsPoor(message)) {
    return "the job succeeded with a poor model: " + message;
  }
  if (status->report.phase != controller::Phase::kFailed) {
    return "";
  }
  const bool diverged = message.find("training diverged") != std::string::npos;
  return diverged || DidNotLearn(message)
             ? "the job failed, and its newest model may be of no use: " + message
             : "";
}

}  // namespace adamant::cli
