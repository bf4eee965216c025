#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace adamant {

/// XXH3, 64 bits: guards stored values and snapshots against corruption (not against an attacker).
/// Threads: any.
std::uint64_t Checksum(std::span<const std::byte> bytes);

/// The same as 16 hexadecimal digits, for files of text.
std::string HexChecksum(std::span<const std::byte> bytes);

}  // namespace adamant
