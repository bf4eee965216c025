#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace adamant {

/// Treatment of what is no regular file, when a file is read or written: a user may name a pipe, as
/// the shell's <(...) does; in a folder of ours one is damage, and who opens it waits for ever.
enum class Pipes : std::uint8_t { kRefused, kRead };

/// Reads a whole file of at most `max_bytes`.
/// Errors: NotFound; OutOfRange if it is larger; DataLoss if it is no regular file and that is
/// refused; Unavailable for other system errors. The message names the path.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path,
                                     std::uint64_t max_bytes,
                                     Pipes pipes = Pipes::kRefused);

/// The error for what lies where something else belongs: "PATH: is a FIFO, where a file belongs".
/// `found`: symlink for a link that leads to itself, not_found for one that leads nowhere.
absl::Status Misplaced(const std::filesystem::path& path,
                       std::filesystem::file_type found,
                       std::filesystem::file_type wanted);

/// Returns the path WriteFileAtomically writes first. A process killed meanwhile leaves it behind.
std::filesystem::path TemporaryOf(std::filesystem::path path);

/// Writes `content` beside `path`, syncs it and renames it over `path`: readers see the old file or
/// the new one, also after a crash. Errors: ResourceExhausted if the disk is full,
/// PermissionDenied, DataLoss if `path` is a folder, else Unavailable, naming the path.
absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

/// Writes a file that a user has named. Where nothing or a regular file is, at the end of links, as
/// WriteFileAtomically; all else, as a pipe or a device, is written through, and never replaced: it
/// may be somebody's /dev/null. Errors: as WriteFileAtomically; DataLoss if `path` is no regular
/// file and that is refused.
absl::Status WriteFile(const std::filesystem::path& path,
                       std::string_view content,
                       Pipes pipes = Pipes::kRead);

/// Makes durable which files are in a folder. Error: as SystemError.
absl::Status SyncFolder(const std::filesystem::path& path);

/// Makes a folder and those above it, where they are not there. Error: as SystemError.
absl::Status MakeFolder(const std::filesystem::path& path);

/// Returns where a link leads, or the links that follow it, whether anything is there or not;
/// `path` itself where it is none.
std::filesystem::path EndOfLinks(std::filesystem::path path);

/// Returns whether `path` is a link at whose end nothing is, as where a disk is not mounted.
bool LeadsNowhere(const std::filesystem::path& path);

/// Returns whether a limit of open files (EMFILE, ENFILE) is what the message of a
/// ResourceExhausted tells of, rather than a full disk.
bool IsOpenFileLimit(std::string_view message);

/// Returns whether a limit of file sizes (EFBIG) is what the message of a ResourceExhausted tells
/// of, rather than a full disk.
bool IsFileSizeLimit(std::string_view message);

/// Returns whether a file of so many bytes would exceed this process's limit of file sizes. A write
/// past the page cache that crosses a limit which is no multiple of a block fails with EINVAL.
bool ExceedsFileSizeLimit(std::uint64_t bytes);

/// Returns what to add to a message of ENOSPC about `path`, which may not be there: " (…)" where
/// its file system has room, and no inodes (df -i); else "". SystemError does so itself.
std::string InodeHint(const std::filesystem::path& path);

/// Returns what a person can do, where a message tells of a full disk or of a limit of files or
/// their sizes: "make room on that disk"; "" for all others.
std::string WhatMakesRoom(std::string_view message);

/// Returns the text for a ResourceExhausted: "disk full: …", or what is true of a limit of files.
std::string DescribeFull(const absl::Status& full);

/// The status for a failed system call: what was done, to which path, and the system's reason for
/// `error` (an errno); of a link that ends at nothing also where it leads.
absl::Status SystemError(int error, std::string_view what, const std::filesystem::path& path);

}  // namespace adamant
