#pragma once

#include <cstdint>

namespace adamant {

/// Returns a number from the system's source of randomness that no other call gives; never 0.
std::uint64_t RandomId();

}  // namespace adamant
