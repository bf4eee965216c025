#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/state/state.h"

namespace adamant::v1 {
class DataSource;
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// Checks that the job needs nothing that only a cluster has. Error: InvalidArgument, beginning
/// with the field.
absl::Status CheckOneMachine(const v1::TrainingJob& job);

/// Number of examples of a data source, 0 where only those who fetch it will know; reads no more
/// than headers. Errors: those of InspectIdx.
absl::StatusOr<std::uint64_t> ExamplesOf(const v1::DataSource& source);

/// Returns what the controller needs of the job, with the number of training examples where it is
/// known. Errors: those of ExamplesOf.
absl::StatusOr<controller::JobSettings> SettingsOf(const v1::TrainingJob& job);

}  // namespace adamant::local
