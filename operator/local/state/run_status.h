#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "operator/core/job/job_controller.h"

namespace adamant::local {

/// State of a run: asked of its controller while that runs, else read from the run directory
/// (then `live` is false and only what is stored is known), also while it runs as another user.
struct RunStatus {
  bool live = false;
  bool anothers = false;  ///< it runs, and its controller answers another user only
  controller::JobReport report;
  std::string damage = {};     ///< of what is stored, and is not needed as there is a copy
  std::string gone_back = {};  ///< that what is stored lacks epochs that have ended
  std::string not_taken = {};  ///< of a job.yaml that is not taken, as NotTaken
};

/// Errors: NotFound when the folder holds no run; InvalidArgument when its manifest is none;
/// Unavailable when its controller does not answer within 3 s; DataLoss when the state is damaged.
absl::StatusOr<RunStatus> ReadRunStatus(const std::filesystem::path& run_folder);

}  // namespace adamant::local
