#pragma once

#include <string>
#include <vector>

#include "operator/core/job/job_controller.h"
#include "operator/local/run_folder/run_paths.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// Returns what people are told as a run begins or goes on: `warnings` of its manifest, `changes`
/// of that since it was started, and of a run that has succeeded what is wrong with its model.
std::vector<std::string> TextsAtStart(const controller::JobController& controller,
                                      const v1::TrainingJob& job,
                                      const RunPaths& paths,
                                      const std::vector<std::string>& warnings,
                                      const std::vector<std::string>& changes);

}  // namespace adamant::local
