#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace adamant {

/// Reads a whole file of at most `max_bytes`.
/// Errors: NotFound; OutOfRange if it is larger; Unavailable for other system errors. The message
/// names the path.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, std::uint64_t max_bytes);

/// Writes `content` beside `path`, syncs it and renames it over `path`: readers see the old file or
/// the new one, also after a crash. Errors: ResourceExhausted if the disk is full,
/// PermissionDenied, else Unavailable, naming the path.
absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

/// Writes a file that a user has named. Where nothing or a regular file is, at the end of links, as
/// WriteFileAtomically; all else, as a pipe or a device, is written through, and never replaced: it
/// may be somebody's /dev/null. Errors: as WriteFileAtomically.
absl::Status WriteFile(const std::filesystem::path& path, std::string_view content);

/// Where a link leads, or the links that follow it, if anything is there or not; `path` itself
/// where it is none.
std::filesystem::path EndOfLinks(std::filesystem::path path);

/// Whether a limit of file sizes (EFBIG) is what the message of a ResourceExhausted tells of,
/// rather than a full disk.
bool IsFileSizeLimit(std::string_view message);

/// What is said of a ResourceExhausted: "disk full: …", or what is true of a limit of file sizes.
std::string DescribeFull(const absl::Status& full);

/// The status for a failed system call: what was done, to which path, and the system's reason for
/// `error` (an errno).
absl::Status SystemError(int error, std::string_view what, const std::filesystem::path& path);

}  // namespace adamant
