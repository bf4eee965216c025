#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rocksdb {
class DB;
class Env;
}  // namespace rocksdb

namespace adamant::storage {

/// Mark that a store leaves beside its files, for CheckFiles: files that must be there by their
/// names, and how many bytes of each must be whole. A mark that is older than the store demands
/// less, and never too much.
/// Threads: one at a time. Errors: those of the file system, naming the file.
using FileMark = std::map<std::string, std::uint64_t>;

/// Of a store that is open: its manifest, and the logs that it would need now.
absl::StatusOr<FileMark> MarkOf(rocksdb::DB& db,
                                rocksdb::Env& env,
                                const std::filesystem::path& folder);

/// Makes the mark that of an orderly end: the logs, which are synced and change no more, must be as
/// long as they are.
absl::Status CloseMark(rocksdb::Env& env, const std::filesystem::path& folder, FileMark& mark);

/// Empty where there is none, or it is damaged, or of a later version.
absl::StatusOr<FileMark> ReadMark(rocksdb::Env& env, const std::filesystem::path& folder);

/// Replaces the mark, durably.
absl::Status WriteMark(rocksdb::Env& env,
                       const std::filesystem::path& folder,
                       const FileMark& mark);

/// The files are going to change: a mark as they were before this one, which knew no manifest and
/// does not excuse what follows from that, is gone, durably.
absl::Status RemoveFormerMark(rocksdb::Env& env, const std::filesystem::path& folder);

}  // namespace adamant::storage
