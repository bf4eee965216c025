#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/local/observer.h"
#include "operator/local/run_folder/run_paths.h"
#include "operator/local/runner.h"

namespace adamant::local {

/// Gives back the room that a run which has succeeded needs no more: of what its parameter servers
/// have stored only the checkpoints stay that its manifests name, so that they can be exported. May
/// be called again, and after it was cut short. No process of the run may live. Errors: those of
/// ReadCheckpointManifests, of KvStore, and Aborted when another program reads the run.
absl::Status TidyFinishedRun(const RunPaths& paths);

/// Returns how a run ended that has succeeded and has nothing more to train, as RunJob tells it,
/// without writing anything: its folder may be on a file system that is read alone. Errors: those
/// of ReadRunStatus.
absl::StatusOr<RunOutcome> ShowFinishedRun(const v1::TrainingJob& job,
                                           const RunOptions& options,
                                           Observer& observer);

}  // namespace adamant::local
