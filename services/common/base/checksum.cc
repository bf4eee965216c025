#include "services/common/base/checksum.h"

#include <xxhash.h>

#include <cinttypes>
#include <cstdio>

namespace adamant {

std::uint64_t Checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string HexChecksum(std::span<const std::byte> bytes) {
  char hex[17];
  std::snprintf(hex, sizeof(hex), "%016" PRIx64, Checksum(bytes));
  return hex;
}

}  // namespace adamant
