#pragma once

#include <cstdint>

namespace adamant {

/// Returns a number from the system's source of randomness, which names a run or a writer; never 0.
/// Ends the process where the system has no such source (Linux before 3.17).
std::uint64_t RandomId();

}  // namespace adamant
