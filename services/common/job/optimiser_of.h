#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::v1 {
class TrainingJob;
}

namespace adamant::job {

/// Rewrites the progress in the job's schedule (epochs, or the whole job where `over` is absent) as
/// examples, so that every process can evaluate it without knowing the data. The controller does it
/// once, before it hands out the job. `epochs`: of the whole job; 0: those that the job has now.
void CountProgressInExamples(std::uint64_t training_examples,
                             std::uint64_t epochs,
                             v1::TrainingJob& job);

/// Returns how each of `parameters` is trained: the job's optimiser with its layers' overrides.
/// `job` has its defaults.
/// Errors: FailedPrecondition if the schedule counts epochs (CountProgressInExamples was not
/// called).
absl::StatusOr<std::vector<ParameterOptimiser>> OptimisersOf(const v1::TrainingJob& job,
                                                             std::span<const Parameter> parameters);

}  // namespace adamant::job
