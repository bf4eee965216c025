#include "operator/local/state/old_state.h"

#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "operator/local/history/recorder.h"
#include "operator/local/run_folder/checkpoint_file.h"

namespace adamant::local {
namespace {

// A manifest is written once the state that names its checkpoint is stored.
std::string NewerCheckpoint(const RunPaths& paths, const controller::JobState& state) {
  const absl::StatusOr<std::vector<CheckpointManifest>> manifests = ReadCheckpointManifests(paths);
  if (!manifests.ok() || manifests->front().job_uid != state.job_uid ||
      manifests->front().checkpoint.snapshot <= state.last_snapshot) {
    return "";
  }
  return paths.checkpoints().string() + " has checkpoint " +
         std::to_string(manifests->front().checkpoint.snapshot) +
         ", and the controller's state knows of none beyond " + std::to_string(state.last_snapshot);
}

}  // namespace

std::string OlderThanRun(const RunPaths& paths,
                         const controller::JobState& state,
                         const std::vector<controller::EpochResult>& results) {
  const std::string rows = Recorder::CheckRows(paths, results);
  return rows.empty() ? NewerCheckpoint(paths, state) : rows;
}

absl::Status CheckDisksAreThere(const RunPaths& paths, const controller::JobState& state) {
  bool any = state.checkpoint.buckets.empty();  // it has its first weights to go back to
  for (const controller::CheckpointBucket& bucket : state.checkpoint.buckets) {
    std::error_code error;
    any = any || std::filesystem::exists(
                     std::filesystem::symlink_status(paths.store_of(bucket.slot), error));
  }
  return any ? absl::OkStatus()
             : absl::DataLossError(
                   paths.data().string() +
                   ": is empty or gone, and what was trained was in it: put it back, and the run "
                   "goes on; without it a new run begins anew: adamant train " +
                   paths.job().string() + " --run-dir NEW_FOLDER");
}

}  // namespace adamant::local
