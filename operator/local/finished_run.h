#pragma once

#include "absl/status/status.h"
#include "operator/local/run_dir.h"

namespace adamant::local {

/// Gives back the room that a run which has succeeded needs no more: of what its parameter servers
/// have stored only the checkpoints stay that its manifests name, so that they can be exported. May
/// be called again, and after it was cut short. No process of the run may live. Errors: those of
/// ReadManifests, of KvStore, and Aborted when another program reads the run.
absl::Status TidyFinishedRun(const RunPaths& paths);

}  // namespace adamant::local
