#include "operator/cli/commands/model_warning.h"

#include "absl/status/statusor.h"
#include "operator/cli/commands/display.h"
#include "operator/local/state/run_status.h"

namespace adamant::cli {

std::string ModelWarning(const std::string& run_folder) {
  const absl::StatusOr<local::RunStatus> status = local::ReadRunStatus(run_folder);
  if (!status.ok()) {
    return "";
  }
  const controller::JobReport& report = status->report;
  if (report.phase == controller::Phase::kSucceeded && IsPoor(report.end)) {
    return "the job succeeded with a poor model: " + report.message;
  }
  return HadDiverged(report.end) || DidNotLearn(report.end)
             ? "the job failed, and its newest model may be of no use: " + report.message
             : "";
}

}  // namespace adamant::cli
