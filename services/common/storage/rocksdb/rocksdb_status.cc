#include "services/common/storage/rocksdb/rocksdb_status.h"

#include <rocksdb/status.h>

#include <string>

#include "services/common/base/system/files.h"

namespace adamant::storage {
namespace {

// As SystemError has it. RocksDB tells a limit of file sizes by its text alone.
bool IsDiskFull(const rocksdb::Status& status) {
  if (status.IsIOError() && IsFileSizeLimit(status.ToString())) {
    return true;
  }
  return status.IsNoSpace() || status.subcode() == rocksdb::Status::SubCode::kNoSpace ||
         status.subcode() == rocksdb::Status::SubCode::kSpaceLimit;
}

// Of a disk that is full, or when no more files may be opened.
absl::Status Full(const rocksdb::Status& status, const std::filesystem::path& path) {
  return absl::ResourceExhaustedError(path.string() + ": " + status.ToString() + InodeHint(path));
}

absl::Status Make(absl::StatusCode code,
                  const rocksdb::Status& status,
                  const std::filesystem::path& path) {
  return {code, path.string() + ": " + status.ToString()};
}

}  // namespace

bool IsOutOfFiles(const rocksdb::Status& status) {
  return status.IsIOError() && IsOpenFileLimit(status.ToString());
}

absl::Status ReadStatus(const rocksdb::Status& status, const std::filesystem::path& path) {
  if (status.ok()) {
    return absl::OkStatus();
  }
  if (IsDiskFull(status)) {
    return Full(status, path);
  }
  return Make(status.IsCorruption() ? absl::StatusCode::kDataLoss : absl::StatusCode::kUnavailable,
              status,
              path);
}

absl::Status OpenStatus(const rocksdb::Status& status, const std::filesystem::path& path) {
  return IsOutOfFiles(status) ? Full(status, path) : ReadStatus(status, path);
}

absl::Status WriteStatus(const rocksdb::Status& status, const std::filesystem::path& path) {
  return IsDiskFull(status) ? Full(status, path) : SyncStatus(status, path);
}

absl::Status SyncStatus(const rocksdb::Status& status, const std::filesystem::path& path) {
  return status.ok() ? absl::OkStatus() : Make(absl::StatusCode::kDataLoss, status, path);
}

}  // namespace adamant::storage
