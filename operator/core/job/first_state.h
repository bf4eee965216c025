#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// Returns the state that a new job begins with.
JobState NewState(const JobSettings& settings, std::uint64_t job_uid);

/// Returns the state that was stored last, with a slot for each worker there is to be now. Errors:
/// those of DecodeState; FailedPrecondition when it belongs to another manifest; DataLoss when its
/// parts do not fit each other.
absl::StatusOr<JobState> StoredState(const JobSettings& settings, std::string_view bytes);

}  // namespace adamant::controller
