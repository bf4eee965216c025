#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/local/run_dir.h"

namespace adamant::v1 {
class TrainingJob;
}

namespace adamant::local {

/// How the manifest of a run that is to go on differs from the one that it was started with last,
/// and its data from what it began with. Each is a line: the field, its values, and of what is
/// refused why, or what to do.
struct Resumption {
  std::vector<std::string> taken;
  std::vector<std::string> refused;  ///< not empty: the run must not go on
};

/// Compares. With `accept_changes` what can be taken only if it is meant is taken, and so it is
/// where the job has succeeded and has no more epochs: then nothing comes of it. A run that has
/// never started, or whose version did not store what it started with, has no differences.
/// Training data with another number of examples is never taken.
/// Of the data job::FingerprintFiles reads what it needs.
/// Errors: DataLoss when what is stored cannot be read; those of the file system.
absl::StatusOr<Resumption> CompareWithStart(const v1::TrainingJob& job,
                                            const RunPaths& paths,
                                            bool accept_changes);

/// The manifest that the run was started with last, which is what its checkpoints are of; null
/// where there is none, as in CompareWithStart. Errors: as there.
absl::StatusOr<std::unique_ptr<v1::TrainingJob>> ReadStart(const RunPaths& paths);

/// Stores what the run is started with; the caller has locked it. Errors: of the file system.
absl::Status StoreStart(const v1::TrainingJob& job, const RunPaths& paths);

}  // namespace adamant::local
