#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/status/statusor.h"
#include "services/common/tensor/shape.h"

namespace adamant::job {

/// The extents in the header of an IDX file of unsigned bytes (plain or gzip), examples first.
/// Errors: NotFound if there is no regular file; InvalidArgument if it is no such file, or a plain
/// one whose size is not what the header says. Messages name what was found and expected, not the
/// path.
absl::StatusOr<Shape> ReadIdxExtents(const std::filesystem::path& path);

/// The largest of the labels in an IDX file that passed ReadIdxExtents. Reads all of it.
/// Errors: InvalidArgument if it ends early or is corrupt.
absl::StatusOr<int> LargestLabel(const std::filesystem::path& path, std::int64_t labels);

}  // namespace adamant::job
