#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace adamant::storage {

/// RocksDB opens a store whose log is damaged, without what follows the damage and without a word:
/// it cannot tell damage from the end that a loss of power has cut. These tell.
/// Threads: one at a time, and nobody else has the store open.

/// Error: DataLoss, naming the file and what to do, when the log is damaged before its end: a later
/// write can be read. A cut end is no damage, unless the store was closed in order: then the log
/// is as long and as whole as it was.
absl::Status CheckLog(rocksdb::Env& env, const std::filesystem::path& folder);

/// The store is being closed in order, and its log is synced: leaves a mark that says how long the
/// log is.
absl::Status MarkClosed(rocksdb::Env& env, const std::filesystem::path& folder);

/// The log is going to change: removes the mark.
absl::Status RemoveClosedMark(rocksdb::Env& env, const std::filesystem::path& folder);

}  // namespace adamant::storage
