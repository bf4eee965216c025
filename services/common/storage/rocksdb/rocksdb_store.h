#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/storage/kv_store.h"

namespace rocksdb {
class DB;
class Env;
class Status;
}  // namespace rocksdb

namespace adamant::storage {

struct RocksDbOptions {
  /// Written bytes that are gathered in memory (besides the log) before they go to disk as a table
  /// in the background; RocksDB may hold three times as much.
  std::uint64_t write_buffer_bytes = std::uint64_t{32} << 20;

  /// The file system, for tests; must outlive the store. Null: that of this machine.
  rocksdb::Env* env = nullptr;
};

/// A KvStore in a folder of RocksDB files, for records. All changes go through RocksDB's log: Write
/// and Flush sync it, WriteLogged and WriteLazily do not. Its software checksums make that slow for
/// large values, many of which belong into a SegmentStore (docs/design/0008-segment-store.md). An
/// erased range takes with it what is there when the call begins; what others write into it
/// meanwhile may stay. Threads: any.
class RocksDbStore final : public KvStore {
 public:
  /// Opens or creates the store in `folder`; its parent must exist. Reads all files, and checks
  /// them: what is damaged is found here, and not when it happens to be read.
  /// Errors: Unavailable when another process has it open; DataLoss when files are damaged, missing
  /// (CheckFiles has what cannot be told) or no files (CheckKinds); ResourceExhausted when the disk
  /// is full; all name the folder.
  static absl::StatusOr<std::unique_ptr<RocksDbStore>> Open(const std::filesystem::path& folder,
                                                            const RocksDbOptions& options = {});
  /// Opens what is there for reading, and writes nothing. It needs no lock: another process may
  /// have the store open, whose later changes are not seen.
  /// Errors: as Open; what is being written may look damaged. Writes fail.
  static absl::StatusOr<std::unique_ptr<RocksDbStore>> OpenToRead(
      const std::filesystem::path& folder);
  /// Leaves the mark of an orderly end (FileMark), unless the last write failed.
  ~RocksDbStore() override;

  absl::StatusOr<std::string> Get(std::string_view key) const override;
  absl::Status Write(const std::vector<Change>& changes) override;
  absl::Status WriteLogged(const std::vector<Change>& changes) override;
  absl::Status WriteLazily(const std::vector<Change>& changes) override;
  absl::Status Flush() override;
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override;

 private:
  RocksDbStore(std::filesystem::path folder, rocksdb::Env* env, std::unique_ptr<rocksdb::DB> db);

  // After a full disk RocksDB refuses writes until it is told to go on.
  absl::Status GoOn();
  rocksdb::Status FillMemtable();
  absl::Status Put(const std::vector<Change>& changes, bool sync);
  absl::Status AfterWrite(const rocksdb::Status& status);
  void KeepMark();
  bool Mark(bool closed);

  // Constant after construction.
  const std::filesystem::path folder_;
  rocksdb::Env* const env_;  // null: opened to read
  const std::unique_ptr<rocksdb::DB> db_;

  std::atomic<bool> stopped_ = false;  // the last write failed

  Mutex mark_mutex_;                       // one change of the mark at a time, held over the disk
  std::atomic<std::uint64_t> marked_ = 0;  // how often the files had changed when they were marked
};

}  // namespace adamant::storage
