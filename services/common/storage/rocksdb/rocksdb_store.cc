#include "services/common/storage/rocksdb/rocksdb_store.h"

#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/iterator.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <cstdarg>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/common/storage/rocksdb/file_check.h"
#include "services/common/storage/rocksdb/file_kinds.h"
#include "services/common/storage/rocksdb/file_mark.h"
#include "services/common/storage/rocksdb/rocksdb_status.h"

namespace adamant::storage {
namespace {

constexpr char kNobodysKey[] = "";

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// Every read sorts the erased ranges that are still in the write buffer. Ranges that hold less than
// this are therefore erased key by key; of others a write buffer has only room for a few.
constexpr std::uint64_t kSmallRangeBytes = std::uint64_t{256} << 10;

/// The keys of a range; nullopt if it holds more than kSmallRangeBytes, or cannot be read.
std::optional<std::vector<std::string>> SmallRange(rocksdb::DB& db, const Change& range) {
  const rocksdb::Slice end(range.end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &end;
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options));
  std::vector<std::string> keys;
  std::uint64_t bytes = 0;
  for (at->Seek(range.key); at->Valid(); at->Next()) {
    keys.push_back(at->key().ToString());
    bytes += at->key().size() + at->value().size();
    if (bytes > kSmallRangeBytes) {
      return std::nullopt;
    }
  }
  return at->status().ok() ? std::optional(std::move(keys)) : std::nullopt;
}

rocksdb::Status EraseRange(rocksdb::DB& db,
                           const Change& range,
                           std::span<const Change> earlier,
                           rocksdb::WriteBatch& batch) {
  if (range.key >= range.end) {
    return rocksdb::Status::OK();
  }
  std::optional<std::vector<std::string>> keys = SmallRange(db, range);
  if (!keys.has_value()) {
    return batch.DeleteRange(range.key, range.end);
  }
  for (const Change& change : earlier) {
    if (!change.erase && range.key <= change.key && change.key < range.end) {
      keys->push_back(change.key);
    }
  }
  for (const std::string& key : *keys) {
    if (rocksdb::Status status = batch.Delete(key); !status.ok()) {
      return status;
    }
  }
  return rocksdb::Status::OK();
}

/// Adds changes[index]; those before it are in the batch.
rocksdb::Status Add(rocksdb::DB& db,
                    std::span<const Change> changes,
                    std::size_t index,
                    rocksdb::WriteBatch& batch) {
  const Change& change = changes[index];
  if (!change.erase) {
    return batch.Put(change.key, change.value);
  }
  return change.end.empty() ? batch.Delete(change.key)
                            : EraseRange(db, change, changes.first(index), batch);
}

// RocksDB would look for room every five seconds and refuse to be resumed meanwhile; the next write
// resumes it at once.
class ResumeByHand final : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/,
                            rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
};

// RocksDB's own account of what it does would be one more file of the store: once the disk is full,
// version 7.8 aborts the process with the line after the one that it could not write. What matters
// is in the statuses; and a reader would replace the file of the store's owner.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

rocksdb::Options MakeOptions(const RocksDbOptions& options) {
  rocksdb::BlockBasedTableOptions table;
  table.checksum = rocksdb::kXXH3;  // the default, CRC32C, is done in software by Debian's library
  table.no_block_cache = true;      // the owners of the values keep them in memory themselves
  rocksdb::Options result;
  result.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  if (options.env != nullptr) {
    result.env = options.env;
  }
  result.listeners.push_back(std::make_shared<ResumeByHand>());
  result.create_if_missing = true;
  result.paranoid_checks = true;                 // damage is reported, not worked around
  result.compression = rocksdb::kNoCompression;  // float32 weights do not compress
  result.compaction_style = rocksdb::kCompactionStyleUniversal;  // rewrites least
  result.write_buffer_size = options.write_buffer_bytes;
  result.max_write_buffer_number = 3;  // one fills while two are written
  result.max_background_jobs = 2;      // one writes buffers, one merges tables
  // There are few tables. Of 16 threads, where one could not be started, version 7.8 would wait for
  // itself: it clears away what it has begun, which takes the lock that it holds.
  result.max_file_opening_threads = 1;
  // Dirty pages go to disk little by little, so that a sync does not wait for all of them.
  result.bytes_per_sync = std::uint64_t{1} << 20;
  result.wal_bytes_per_sync = std::uint64_t{1} << 20;
  result.info_log = std::make_shared<NoLog>();
  result.avoid_flush_during_shutdown = true;  // all that counts is in the log
  return result;
}

// Recovery writes the logs into tables, up to the first damage, and removes them. Nobody else may
// have the store open while they are looked at; should anybody open it then, RocksDB will say so.
absl::Status CheckBeforeRecovery(rocksdb::Env& env, const std::filesystem::path& folder) {
  if (env.FileExists(folder.string()).IsNotFound()) {
    return absl::OkStatus();
  }
  rocksdb::FileLock* lock = nullptr;
  ADAMANT_RETURN_IF_ERROR(ReadStatus(env.LockFile((folder / "LOCK").string(), &lock), folder));
  absl::Status status = CheckFiles(env, folder);
  if (status.ok()) {
    status = RemoveFormerMark(env, folder);
  }
  status.Update(ReadStatus(env.UnlockFile(lock), folder));
  return status;
}

}  // namespace

RocksDbStore::RocksDbStore(std::filesystem::path folder,
                           rocksdb::Env* env,
                           std::unique_ptr<rocksdb::DB> db)
    : folder_(std::move(folder)), env_(env), db_(std::move(db)) {}

RocksDbStore::~RocksDbStore() {
  if (env_ == nullptr) {
    return;
  }
  rocksdb::CancelAllBackgroundWork(db_.get(), /*wait=*/true);  // the files change no more
  if (!stopped_.load() && db_->SyncWAL().ok()) {
    Mark(/*closed=*/true);
  }
}

absl::StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::Open(
    const std::filesystem::path& folder, const RocksDbOptions& options) {
  const rocksdb::Options rocksdb_options = MakeOptions(options);
  rocksdb::Env* const env = rocksdb_options.env;
  ADAMANT_RETURN_IF_ERROR(SetAsideNeedless(folder));
  ADAMANT_RETURN_IF_ERROR(CheckKinds(folder));
  ADAMANT_RETURN_IF_ERROR(CheckBeforeRecovery(*env, folder));
  rocksdb::DB* db = nullptr;
  ADAMANT_RETURN_IF_ERROR(
      ReadStatus(rocksdb::DB::Open(rocksdb_options, folder.string(), &db), folder));
  std::unique_ptr<rocksdb::DB> opened(db);
  ADAMANT_RETURN_IF_ERROR(ReadStatus(opened->VerifyChecksum(), folder));
  std::unique_ptr<RocksDbStore> store(new RocksDbStore(folder, env, std::move(opened)));
  store->KeepMark();
  return store;
}

absl::StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::OpenToRead(
    const std::filesystem::path& folder) {
  const rocksdb::Options options = MakeOptions({});
  ADAMANT_RETURN_IF_ERROR(CheckKinds(folder));
  ADAMANT_RETURN_IF_ERROR(CheckFiles(*options.env, folder));
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(options, folder.string(), &db);
  ADAMANT_RETURN_IF_ERROR(ReadStatus(status, folder));
  std::unique_ptr<rocksdb::DB> opened(db);
  ADAMANT_RETURN_IF_ERROR(ReadStatus(opened->VerifyChecksum(), folder));
  return std::unique_ptr<RocksDbStore>(new RocksDbStore(folder, nullptr, std::move(opened)));
}

absl::StatusOr<std::string> RocksDbStore::Get(std::string_view key) const {
  std::string value;
  const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), ToSlice(key), &value);
  if (status.IsNotFound()) {
    return absl::NotFoundError(folder_.string() + ": no such key");
  }
  ADAMANT_RETURN_IF_ERROR(ReadStatus(status, folder_));
  return value;
}

absl::Status RocksDbStore::Write(const std::vector<Change>& changes) {
  return Put(changes, /*sync=*/true);
}

absl::Status RocksDbStore::WriteLogged(const std::vector<Change>& changes) {
  return Put(changes, /*sync=*/false);
}

absl::Status RocksDbStore::WriteLazily(const std::vector<Change>& changes) {
  return Put(changes, /*sync=*/false);
}

// Not by rocksdb::DB::Flush, which in version 7.8 may return early, and say OK, once the disk was
// full.
absl::Status RocksDbStore::Flush() { return Put({}, /*sync=*/true); }

absl::Status RocksDbStore::Scan(
    std::string_view prefix,
    const std::function<bool(std::string_view key, std::string_view value)>& visit) const {
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(rocksdb::ReadOptions()));
  for (at->Seek(ToSlice(prefix)); at->Valid() && at->key().starts_with(ToSlice(prefix));
       at->Next()) {
    if (!visit(ToView(at->key()), ToView(at->value()))) {
      return absl::OkStatus();
    }
  }
  return ReadStatus(at->status(), folder_);
}

absl::Status RocksDbStore::GoOn() {
  if (!stopped_.load()) {
    return absl::OkStatus();
  }
  return AfterWrite(db_->Resume());
}

// A log that a write did not fit into takes no other: version 7.8 aborts. Resume begins a new one,
// but only together with a new memtable, and that only where the old one holds something. So it
// always does: a deletion of a key that nobody has, which needs no log. (A write that finds the
// memtable full begins a new one itself; that it is the first one not to fit is not provided for.)
rocksdb::Status RocksDbStore::FillMemtable() {
  std::uint64_t entries = 0;
  if (db_->GetIntProperty(rocksdb::DB::Properties::kNumEntriesActiveMemTable, &entries) &&
      entries > 0) {
    return rocksdb::Status::OK();
  }
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return db_->Delete(options, kNobodysKey);
}

absl::Status RocksDbStore::Put(const std::vector<Change>& changes, bool sync) {
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("storage/write"));
  ADAMANT_RETURN_IF_ERROR(GoOn());
  rocksdb::WriteBatch batch;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (const rocksdb::Status added = Add(*db_, changes, i, batch); !added.ok()) {
      return absl::InvalidArgumentError(folder_.string() + ": " + added.ToString());
    }
  }
  if (const rocksdb::Status filled = FillMemtable(); !filled.ok()) {
    return AfterWrite(filled);
  }
  rocksdb::WriteOptions options;
  options.sync = sync;
  return AfterWrite(db_->Write(options, &batch));
}

absl::Status RocksDbStore::AfterWrite(const rocksdb::Status& status) {
  stopped_ = !status.ok();
  if (status.ok()) {
    KeepMark();
  }
  return WriteStatus(status, folder_);
}

// RocksDB counts its changes of files: a new log, tables that were written or merged.
void RocksDbStore::KeepMark() {
  std::uint64_t changes = 0;
  db_->GetIntProperty(rocksdb::DB::Properties::kCurrentSuperVersionNumber, &changes);
  if (changes == marked_.load()) {
    return;
  }
  const MutexLock lock(mark_mutex_);
  if (Mark(/*closed=*/false)) {
    marked_ = changes;
  }
}

// An old mark, or none, demands less.
bool RocksDbStore::Mark(bool closed) {
  absl::StatusOr<FileMark> mark = MarkOf(*db_, *env_, folder_);
  return mark.ok() && (!closed || CloseMark(*env_, folder_, *mark).ok()) &&
         WriteMark(*env_, folder_, *mark).ok();
}

}  // namespace adamant::storage
