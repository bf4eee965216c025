#include "services/common/dataset/fingerprint.h"

#include <algorithm>
#include <span>
#include <vector>

#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/dataset/input_file.h"

namespace adamant::dataset {
namespace {

// Where the blocks begin; the last one ends with the file.
std::vector<std::uint64_t> BlocksOf(std::uint64_t file_bytes, FingerprintReading reading) {
  std::vector<std::uint64_t> blocks;
  if (reading == FingerprintReading::kWhole ||
      file_bytes <= kFingerprintBlocks * kFingerprintBlockBytes) {
    for (std::uint64_t offset = 0; offset < file_bytes; offset += kFingerprintBlockBytes) {
      blocks.push_back(offset);
    }
    return blocks;
  }
  const std::uint64_t last = file_bytes - kFingerprintBlockBytes;
  constexpr std::uint64_t kGaps = kFingerprintBlocks - 1;
  for (std::uint64_t i = 0; i < kFingerprintBlocks; ++i) {
    blocks.push_back(last / kGaps * i + last % kGaps * i / kGaps);
  }
  return blocks;
}

}  // namespace

absl::StatusOr<std::uint64_t> Fingerprint(const std::string& path, FingerprintReading reading) {
  ADAMANT_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  std::vector<std::uint64_t> hashes = {file.file_bytes()};
  std::vector<std::uint8_t> buffer(kFingerprintBlockBytes);
  for (const std::uint64_t offset : BlocksOf(file.file_bytes(), reading)) {
    const std::span<std::uint8_t> block =
        std::span(buffer).first(std::min(kFingerprintBlockBytes, file.file_bytes() - offset));
    ADAMANT_ASSIGN_OR_RETURN(const std::size_t read, file.ReadFileAt(offset, block));
    if (read < block.size()) {
      return absl::DataLossError(path + ": offset " + std::to_string(offset + read) +
                                 ": the file has become shorter than it was");
    }
    hashes.push_back(Checksum(std::as_bytes(block)));
  }
  return Checksum(std::as_bytes(std::span(hashes)));
}

}  // namespace adamant::dataset
