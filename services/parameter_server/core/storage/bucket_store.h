#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/protocol/persistence_mode.h"
#include "services/common/storage/kv_store.h"
#include "services/parameter_server/core/buckets/bucket.h"
#include "services/parameter_server/core/shards/shard_catalog.h"
#include "services/parameter_server/core/storage/storage_queue.h"
#include "services/parameter_server/core/storage/stored_bucket.h"

namespace adamant::parameter_server {

using protocol::PersistenceMode;

/// A committed record, as it is to be stored.
struct CommittedRecord {
  BucketId bucket = 0;
  std::string key;
  Record record;
  Lsn lsn = 0;  ///< of the put
};

/// State of a bucket when a flush begins.
struct FlushedBucket {
  std::uint64_t life = 0;
  ConfigurationVersion origin = 0;  ///< of the last committed entry
  Lsn committed = 0;                ///< all up to here is flushed; 0: not known
};

/// The live buckets on disk: their shards, records and marks, and how far the log of each is
/// written and erased there.
/// Threads: Load, CheckShard and CheckRecords any; all others one, which they keep waiting.
/// Errors of all that writes: those of the store.
class BucketStore {
 public:
  /// Both must outlive this.
  BucketStore(PersistenceMode mode, const ShardCatalog& catalog, storage::KvStore& store);
  BucketStore(const BucketStore&) = delete;
  BucketStore& operator=(const BucketStore&) = delete;

  [[nodiscard]] PersistenceMode mode() const { return mode_; }
  [[nodiscard]] const ShardCatalog& catalog() const { return catalog_; }

  // --- Reading

  /// See LoadContent.
  [[nodiscard]] absl::StatusOr<StoredContent> Load(BucketId bucket) const;

  /// Reads and checks what is stored of a shard, or of a bucket's records, and returns how many
  /// bytes. Errors: as DecodeShard, LoadRecords, and those of the store.
  [[nodiscard]] absl::StatusOr<std::uint64_t> CheckShard(ShardId shard) const;
  [[nodiscard]] absl::StatusOr<std::uint64_t> CheckRecords(BucketId bucket) const;

  // --- Whole buckets

  /// Makes void what is stored of these buckets.
  absl::Status Unmark(const std::set<BucketId>& buckets);

  /// Stores a bucket that was created or loaded, and ends its log. `is_new`: its shards are not
  /// those that are stored.
  absl::Status StoreLoaded(BucketId bucket, const Bucket::Content& content, bool is_new);

  /// Stores a copy, which includes all up to `committed`, whose entry has this origin, in place of
  /// whatever was stored. A later origin would let it rank before a disk that has more, once the
  /// end of its log is lost with the power; an earlier one behind a disk that has less. Its log
  /// has begun already (Unmark): what was accepted while it came is in that, and need not be in the
  /// copy.
  absl::Status StoreCopy(BucketId bucket,
                         const Bucket::Content& content,
                         ConfigurationVersion origin,
                         Lsn committed);

  // --- Logs and records

  /// Stores entries, in this order.
  absl::Status WriteEntries(std::span<const PersistTask> tasks);

  /// Stores records. Where only records are logged, the log is done with up to them.
  absl::Status WriteRecords(std::span<const CommittedRecord> records);

  /// By bucket. Erases the logs of what was flushed. On a full disk they stay until the next flush.
  absl::Status EraseFlushed(std::span<const FlushedBucket> flushed);

 private:
  std::vector<storage::Change> EraseLog(BucketId bucket);
  absl::Status StoreContent(BucketId bucket,
                            const Bucket::Content& content,
                            std::vector<storage::Change> changes);
  absl::Status StoreRecords(BucketId bucket,
                            const Bucket::Content& content,
                            std::vector<storage::Change> changes);
  void NoteErased(std::span<const FlushedBucket> flushed);

  // Constant after construction.
  const PersistenceMode mode_;
  const ShardCatalog& catalog_;
  storage::KvStore& store_;

  // Of the thread that writes.
  std::vector<Lsn> logged_until_;  // by bucket: the last entry stored
  // By bucket: entries up to this are erased, and are not looked at again, because a store may have
  // to pass by everything that ever was there.
  std::vector<Lsn> erased_until_;
};

}  // namespace adamant::parameter_server
