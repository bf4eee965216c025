#pragma once

#include <cstdio>
#include <filesystem>

#include "absl/status/status.h"

/// Files that a user names on the command line for what a command finds; adamant::WriteFile writes
/// them. An empty path: none was asked for.
namespace adamant::cli {

/// Checks that `path` can be such a file, before the work is done. Errors: InvalidArgument when it
/// is a folder, or lies in none.
absl::Status CheckOutputFile(const std::filesystem::path& path);

/// Checks that `path` can be a folder for files, or is one. Errors: InvalidArgument when it, or
/// what it lies in, is a file.
absl::Status CheckOutputFolder(const std::filesystem::path& path);

/// Returns where to say how it went: standard output, or standard error when `path` is standard
/// output, as /dev/stdout is.
std::FILE* SummaryStream(const std::filesystem::path& path);

/// Writes out what standard output still holds, as before anything on standard error. Error:
/// Unavailable when some of what was ever printed is lost, unless nobody reads it any more.
/// Threads: the main thread only.
absl::Status FlushOutput();

}  // namespace adamant::cli
