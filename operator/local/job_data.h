#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace adamant::v1 {
class DataSource;
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// Number of examples of a data source; reads no more than headers. Errors: those of InspectIdx.
absl::StatusOr<std::uint64_t> ExamplesOf(const v1::DataSource& source);

/// Rewrites the job's schedules to count examples, as every process needs them. Errors: those of
/// ExamplesOf.
absl::Status CountProgress(v1::TrainingJob& job);

/// A random number that names a run; never 0.
absl::StatusOr<std::uint64_t> RandomUid();

}  // namespace adamant::local
