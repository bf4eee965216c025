#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace rocksdb {
class Status;
}  // namespace rocksdb

namespace adamant::storage {

/// Statuses of RocksDB in the terms of KvStore. `path` begins the message.

/// Returns whether `status` says that the process, or the machine, may open no more files.
bool IsOutOfFiles(const rocksdb::Status& status);

/// DataLoss for damage; ResourceExhausted for a full disk; else Unavailable.
absl::Status ReadStatus(const rocksdb::Status& status, const std::filesystem::path& path);

/// As ReadStatus, and ResourceExhausted when no more files may be opened: for those that can be
/// tried again.
absl::Status OpenStatus(const rocksdb::Status& status, const std::filesystem::path& path);

/// ResourceExhausted for a full disk; else DataLoss.
absl::Status WriteStatus(const rocksdb::Status& status, const std::filesystem::path& path);

/// DataLoss.
absl::Status SyncStatus(const rocksdb::Status& status, const std::filesystem::path& path);

}  // namespace adamant::storage
