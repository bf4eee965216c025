#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::worker {

/// Returns the bytes of memory that a worker is expected to have at most (VmHWM). How they are
/// reckoned, and how far off they were where they were measured: docs/bench/memory.md. `job` has
/// its defaults. Errors: InvalidArgument for a job that no worker could run.
absl::StatusOr<std::uint64_t> WorkerMemory(v1::TrainingJob job);

}  // namespace adamant::worker
