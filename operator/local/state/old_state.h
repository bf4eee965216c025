#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/state.h"
#include "operator/local/run_folder/run_paths.h"

namespace adamant::local {

/// Says what of the run is newer than its stored state, as after one was put back from a backup:
/// rows of metrics.csv, checkpoints. "" where nothing is. A job that goes on from such a state
/// trains again what was trained, gives out numbers of checkpoints anew, and erases newer ones.
[[nodiscard]] std::string OlderThanRun(const RunPaths& paths,
                                       const controller::JobState& state,
                                       const std::vector<controller::EpochResult>& results);

/// Checks that any parameter server's folder is there of a job that has a checkpoint: without all
/// of them neither that nor anything newer is left. Error: DataLoss, saying what a person can do.
absl::Status CheckDisksAreThere(const RunPaths& paths, const controller::JobState& state);

}  // namespace adamant::local
