#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace adamant::storage {

/// Whoever opens a FIFO in place of a file waits for ever, and a folder can be opened and not read.
/// So a store asks first. Links count as what is at their end, and are an error where nothing is;
/// what is not there itself is none.
/// Error: DataLoss, naming the path.
absl::Status CheckIsFile(const std::filesystem::path& path);
absl::Status CheckIsFolder(const std::filesystem::path& path);

/// The same for a folder of RocksDB's files and those of them that are there. Others in it may be
/// anything.
absl::Status CheckKinds(const std::filesystem::path& folder);

/// Sets aside (SetAside) what is in the place of a file that is made anew where it is missing, and
/// is no file. Errors: those of SetAside.
absl::Status SetAsideNeedless(const std::filesystem::path& folder);

}  // namespace adamant::storage
