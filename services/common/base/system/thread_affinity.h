#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace adamant {

/// Returns the number of CPUs that the calling thread may run on; at least 1.
std::size_t UsableCpus();

/// From now on the calling thread runs on one CPU only: the index-th of those that it may run on,
/// counted around. Errors: Internal when the system refuses.
absl::Status PinThread(std::size_t index);

}  // namespace adamant
