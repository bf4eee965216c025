#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/local/run_folder/run_paths.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// A run whose newest checkpoint is to be saved.
struct CheckpointSource {
  const v1::TrainingJob& job;  ///< with which it was started, with its defaults
  const RunPaths& paths;
  /// Of StateStore::Snapshot, as its controller stored it when the checkpoint was its newest.
  const std::map<std::string, std::string>& entries;
};

/// Number of the checkpoint that would be saved. Errors: NotFound when there is none; DataLoss when
/// the state is damaged.
absl::StatusOr<std::uint64_t> NewestCheckpoint(const CheckpointSource& source);

/// Saves it whole in `folder`, which is to be new or empty, or nothing. Reads what the parameter
/// servers have on their disks, also while they run: they must keep the checkpoint until this
/// returns. Threads: any.
/// Errors: Cancelled once `stop` is requested; those of NewestCheckpoint; DataLoss when a bucket is
/// not as the state names it; those of SavedCheckpointWriter.
absl::Status SaveCheckpoint(const CheckpointSource& source,
                            const std::filesystem::path& folder,
                            const std::stop_token& stop = {});

}  // namespace adamant::local
