#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "operator/local/model/model_file.h"
#include "operator/local/run_folder/run_paths.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// Reads the model of a run's checkpoint number `checkpoint`; 0: of its newest valid one. While the
/// run runs, its parameter servers are asked; else their stores are read, whether the run has
/// ended, failed, was suspended or died. A checkpoint is valid if its manifest and, where stores
/// are read, every bucket that it names are as they were written. `job` has its defaults. Threads:
/// any. Errors: NotFound without this checkpoint, naming those there are; DataLoss when it is not
/// valid, or none is, saying what is wrong with the newest; Unavailable when a server that is
/// running cannot give it now; Aborted when another program reads the run.
absl::StatusOr<ModelFile> ReadCheckpointModel(const v1::TrainingJob& job,
                                              const RunPaths& paths,
                                              std::uint64_t checkpoint = 0);

}  // namespace adamant::local
