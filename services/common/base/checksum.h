#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace adamant {

/// XXH3, 64 bits: guards stored values and snapshots against corruption (not against an attacker).
/// Threads: any.
std::uint64_t Checksum(std::span<const std::byte> bytes);

}  // namespace adamant
