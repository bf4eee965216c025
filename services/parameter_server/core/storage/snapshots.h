#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/checkpoint/snapshot_store.h"
#include "services/common/storage/kv_store.h"
#include "services/parameter_server/core/buckets/records.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/shards/live_shard.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::parameter_server {

/// Copies of buckets under an id, taken of live buckets and kept in the store.
/// Threads: Take and Drop one at a time; the others any.
class Snapshots : public checkpoint::SnapshotStore {
 public:
  using SnapshotStore::SnapshotStore;

  /// Shards and records of a bucket that are copied.
  struct Source {
    std::span<const LiveShardPtr> shards;
    const RecordMap& records;
  };

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

  /// One shard of a complete copy, as it was stored; outcome kNoSuchSnapshot if there is none.
  /// Errors: as ReadShard.
  absl::StatusOr<ShardValue> Read(std::uint64_t snapshot,
                                  BucketId bucket,
                                  const ShardIdentity& identity) const;

 private:
  class Group;

  absl::StatusOr<SnapshotBucket> TakeInto(std::uint64_t snapshot, const Item& item, Group& group);
  [[nodiscard]] bool HasAny(const std::string& prefix) const;

  using Visit = std::function<absl::Status(const std::string& key, std::string value)>;

  /// Calls `visit` with all that a copy of the bucket consists of, by key of the live bucket.
  [[nodiscard]] absl::Status ForEach(BucketId bucket,
                                     const Source& source,
                                     const Visit& visit) const;
};

}  // namespace adamant::parameter_server
