#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::control {

/// Numbers of examples of a job's data sets; 0: not known.
struct ExampleCounts {
  std::uint64_t train = 0;
  std::uint64_t validation = 0;
};

/// Bytes of memory that a process of each kind is expected to have at most (VmHWM).
struct ServerMemory {
  std::uint64_t parameter_server = 0;
  std::uint64_t data_server = 0;
  std::uint64_t controller = 0;  ///< that of one machine, `adamant train`
};

/// Returns what a job's processes but the workers are expected to take. How that is reckoned, and
/// how far off it was where it was measured: docs/bench/memory.md. `job` has its defaults. Errors:
/// InvalidArgument for a net that cannot be built.
absl::StatusOr<ServerMemory> ServerMemoryOf(const v1::TrainingJob& job,
                                            const ExampleCounts& examples);

}  // namespace adamant::control
