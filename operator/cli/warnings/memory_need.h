#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::cli {

/// Memory that the processes of a role are expected to have at most (VmHWM).
struct MemoryNeed {
  std::string role;  ///< "worker"
  std::int32_t processes = 1;
  std::uint64_t bytes = 0;  ///< of each
};

/// By role, what a job takes on this machine; the controller is `adamant train` itself. How it is
/// reckoned, and how far off it was where it was measured: docs/bench/memory.md. `job` has its
/// defaults. Errors: InvalidArgument for a job that no worker could run.
absl::StatusOr<std::vector<MemoryNeed>> MemoryNeeds(const v1::TrainingJob& job);

/// A line for people: the need by role and in all, and what is free where that is known.
std::string MemoryLine(const std::vector<MemoryNeed>& needs, std::optional<std::uint64_t> free);

/// Returns what to warn of before the job starts; "" where there is room, or that is not known.
std::string MemoryWarning(const std::vector<MemoryNeed>& needs, std::optional<std::uint64_t> free);

}  // namespace adamant::cli
