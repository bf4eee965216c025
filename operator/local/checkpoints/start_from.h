#pragma once

#include "absl/status/status.h"
#include "operator/core/state/state_store.h"
#include "operator/local/run_folder/run_paths.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// Checks that a job can begin with what its spec.startFrom names, if it names anything: reads all
/// of it. `job` has its defaults. Threads: any.
/// Errors: InvalidArgument when it does not fit the job, naming the fields, or the parameters with
/// both shapes; NotFound, DataLoss and FailedPrecondition of what is stored; those of the file
/// system. Each begins with the field of the manifest.
absl::Status CheckStart(const v1::TrainingJob& job);

/// Gives a run that has not begun what its job starts from: the stores of its parameter servers,
/// and its controller's state. Of a run that has begun it completes what was interrupted; of a job
/// that starts from nothing it does nothing. The caller has locked the run. Errors: those of
/// CheckStart, of SegmentStore and of `state`.
absl::Status EnterStart(const v1::TrainingJob& job,
                        const RunPaths& paths,
                        controller::StateStore& state);

}  // namespace adamant::local
