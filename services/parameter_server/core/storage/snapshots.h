#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/storage/kv_store.h"
#include "services/parameter_server/core/buckets/records.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/shards/live_shard.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::parameter_server {

/// Copies of buckets under an id, kept in the store.
/// Threads: Take and Drop one at a time; the others any.
class Snapshots {
 public:
  /// Shards and records of a bucket that are copied.
  struct Source {
    std::span<const LiveShardPtr> shards;
    const RecordMap& records;
  };

  /// `store` must outlive this.
  Snapshots(std::uint64_t job_uid, storage::KvStore& store);

  /// A bucket to copy, and how it stands.
  struct Item {
    SnapshotBucket about;
    Source source;
  };

  /// Copies buckets as they are now (each shard at one moment, while traffic goes on) and returns
  /// when the copies are on disk: what was said of them, with the checksums. Of one that was copied
  /// in the same generation before, nothing is copied: a command that comes again, perhaps late,
  /// when workers push again and others have died, changes no checkpoint. Errors: those of KvStore;
  /// then some may have been copied.
  absl::StatusOr<std::vector<SnapshotBucket>> Take(std::uint64_t snapshot,
                                                   std::span<const Item> items);

  /// Writes anew, from `source`, what cannot be read of a copy, if that makes it again what it was
  /// when it was taken. Returns whether it is now. Errors: those of KvStore.
  absl::StatusOr<bool> Repair(std::uint64_t snapshot, BucketId bucket, const Source& source);

  /// Removes the snapshots below `keep_from` that are not in `keep`.
  absl::Status Drop(std::uint64_t keep_from, std::span<const std::uint64_t> keep);

  /// Removes all else from the store: the live buckets too, and every other snapshot.
  absl::Status KeepOnly(const std::set<std::uint64_t>& snapshots);

  /// The buckets' copies that are complete, with their snapshots, in that order.
  [[nodiscard]] absl::StatusOr<std::vector<std::pair<std::uint64_t, BucketId>>> All() const;

  /// Returns what was said of a bucket's copy when it was complete; nullopt if there is none.
  /// Errors: FailedPrecondition for an unknown format version; those of KvStore::Get.
  [[nodiscard]] absl::StatusOr<std::optional<SnapshotBucket>> Find(std::uint64_t snapshot,
                                                                   BucketId bucket) const;

  /// One shard of a complete copy, as it was stored; outcome kNoSuchSnapshot if there is none.
  /// Errors: DataLoss if the copy is corrupt; FailedPrecondition as in DecodeShard.
  absl::StatusOr<ShardValue> Read(std::uint64_t snapshot,
                                  BucketId bucket,
                                  const ShardIdentity& identity) const;

  /// The same with optimiser state and deduplication table. NotFound if there is none.
  absl::StatusOr<ShardContent> LoadShard(std::uint64_t snapshot,
                                         BucketId bucket,
                                         const ShardIdentity& identity) const;

  /// The records of a copy. NotFound if there is none. Errors: as LoadRecords.
  absl::StatusOr<RecordMap> LoadRecords(std::uint64_t snapshot, BucketId bucket) const;

 private:
  class Group;

  absl::StatusOr<SnapshotBucket> TakeInto(std::uint64_t snapshot, const Item& item, Group& group);
  [[nodiscard]] bool HasAny(const std::string& prefix) const;

  using Visit = std::function<absl::Status(const std::string& key, std::string value)>;

  /// Calls `visit` with all that a copy of the bucket consists of, by key of the live bucket.
  [[nodiscard]] absl::Status ForEach(BucketId bucket,
                                     const Source& source,
                                     const Visit& visit) const;
  [[nodiscard]] absl::Status FindComplete(std::uint64_t snapshot, BucketId bucket) const;

  const std::uint64_t job_uid_;
  storage::KvStore& store_;
};

}  // namespace adamant::parameter_server
