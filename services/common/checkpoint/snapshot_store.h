#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/checkpoint/record.h"
#include "services/common/checkpoint/shard_record.h"
#include "services/common/protocol/buckets.h"
#include "services/common/storage/kv_store.h"

namespace adamant::checkpoint {

/// A shard of a copy as it lies in the store.
struct StoredShard {
  std::shared_ptr<const std::string> bytes;
  ShardRecord record;  ///< its spans point into `bytes`
};

/// Copies of buckets under an id in the store of a parameter server: reads them.
/// Threads: any.
class SnapshotStore {
 public:
  /// `store` must outlive this.
  SnapshotStore(std::uint64_t job_uid, storage::KvStore& store);

  /// Removes all else from the store: the live buckets too, and every other snapshot.
  absl::Status KeepOnly(const std::set<std::uint64_t>& snapshots);

  /// The buckets' copies that are complete, with their snapshots, in that order.
  [[nodiscard]] absl::StatusOr<std::vector<std::pair<std::uint64_t, BucketId>>> All() const;

  /// Returns what was said of a bucket's copy when it was complete; nullopt if there is none.
  /// Errors: FailedPrecondition for an unknown format version; those of KvStore::Get.
  [[nodiscard]] absl::StatusOr<std::optional<protocol::SnapshotBucket>> Find(std::uint64_t snapshot,
                                                                             BucketId bucket) const;

  /// One shard of a complete copy, as it was stored; nullopt if there is none.
  /// Errors: DataLoss if the copy is corrupt; FailedPrecondition as in DecodeShard.
  absl::StatusOr<std::optional<StoredShard>> ReadShard(std::uint64_t snapshot,
                                                       BucketId bucket,
                                                       const ShardIdentity& identity) const;

  /// The same as a value of its own. NotFound if there is none.
  absl::StatusOr<ShardContent> LoadShard(std::uint64_t snapshot,
                                         BucketId bucket,
                                         const ShardIdentity& identity) const;

  /// The records of a copy. NotFound if there is none. Errors: as LoadRecords.
  absl::StatusOr<RecordMap> LoadRecords(std::uint64_t snapshot, BucketId bucket) const;

 protected:
  [[nodiscard]] std::uint64_t job_uid() const { return job_uid_; }
  [[nodiscard]] storage::KvStore& store() const { return store_; }

 private:
  [[nodiscard]] absl::Status FindComplete(std::uint64_t snapshot, BucketId bucket) const;

  const std::uint64_t job_uid_;
  storage::KvStore& store_;
};

}  // namespace adamant::checkpoint
