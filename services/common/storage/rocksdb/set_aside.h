#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace adamant::storage {

/// Renames the folder of a damaged store, which nobody has open, to `folder`.damaged; an earlier
/// one of that name goes. Errors: those of the file system, naming the new folder.
absl::Status SetAside(const std::filesystem::path& folder);

}  // namespace adamant::storage
