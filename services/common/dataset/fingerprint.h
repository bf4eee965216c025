#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace adamant::dataset {

/// Part of a file that its fingerprint is of, besides its size.
enum class FingerprintReading : std::uint8_t {
  kSample,  ///< kFingerprintBlocks blocks, from the first byte to the last, evenly spread; all of a
            ///< file that is no larger than these
  kWhole,
};

inline constexpr std::uint64_t kFingerprintBlocks = 256;
inline constexpr std::uint64_t kFingerprintBlockBytes = std::uint64_t{64} << 10;

/// A number that tells whether a file is still the same, wherever it lies and whatever its times:
/// XXH3 over its size and the XXH3s of its blocks, as they are on disk. Of a sample it does not
/// notice what changes between the blocks; but all of a file that is compressed by gzip in one go,
/// whose checksum is in its last block. It guards against mistakes, not against an attacker. It is
/// stored: another way to reckon it needs another name there.
/// Threads: any.
/// Errors: those of InputFile::Open; DataLoss when the file becomes shorter meanwhile.
absl::StatusOr<std::uint64_t> Fingerprint(const std::string& path, FingerprintReading reading);

}  // namespace adamant::dataset
