#pragma once

#include "absl/status/statusor.h"
#include "operator/local/model_file.h"
#include "operator/local/run_dir.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// Reads the model of a run's newest valid checkpoint from the stores of its parameter servers: of
/// a run that is not running, whether it failed, was suspended or died. A checkpoint is valid if
/// its manifest and every bucket that it names are as they were written. `job` has its defaults.
/// Threads: any. Errors: Aborted when the run is running; NotFound without a checkpoint; DataLoss
/// when none is valid, saying what is wrong with the newest.
absl::StatusOr<ModelFile> ReadCheckpointModel(const v1::TrainingJob& job, const RunPaths& paths);

}  // namespace adamant::local
