#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// What the pod that serves a job's output tells of it, and whoever fetches it reads.
namespace adamant::kubectl {

/// Files are fetched in pieces of this size; the last one of a file is shorter.
inline constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;

struct OutputFile {
  std::string name;                   ///< without a folder
  std::uint64_t size = 0;             ///< bytes
  std::vector<std::uint64_t> pieces;  ///< Checksum of each

  bool operator==(const OutputFile&) const = default;
};

std::uint64_t PiecesOf(std::uint64_t size);

/// As JSON.
std::string EncodeIndex(const std::vector<OutputFile>& files);

/// Errors: DataLoss for what is no index, names a folder, or whose sizes cannot be.
absl::StatusOr<std::vector<OutputFile>> DecodeIndex(std::string_view text);

}  // namespace adamant::kubectl
