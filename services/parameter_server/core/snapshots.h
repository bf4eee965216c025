#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/storage/kv_store.h"
#include "services/parameter_server/core/live_shard.h"
#include "services/parameter_server/core/messages.h"
#include "services/parameter_server/core/records.h"

namespace adamant::parameter_server {

/// Copies of shards and records under an id, kept in the store.
/// Threads: Take one at a time; Read any.
class Snapshots {
 public:
  /// `store` must outlive this.
  Snapshots(std::uint64_t job_uid, storage::KvStore& store);

  /// Copies `shards` as they are now (each at one moment, all while traffic goes on), and
  /// `records`, and returns when the copies are on disk. Does nothing if that was done before: a
  /// repeated command finds the same values. Errors: those of KvStore.
  absl::Status Take(std::uint64_t snapshot,
                    std::span<const LiveShardPtr> shards,
                    const std::map<BucketId, RecordMap>& records);

  /// Removes the snapshots below `keep_from` that are not in `keep`.
  absl::Status Drop(std::uint64_t keep_from, std::span<const std::uint64_t> keep);

  /// The values of one shard; outcome kNoSuchSnapshot if there is no complete snapshot of that id.
  /// Errors: DataLoss if the copy is corrupt; FailedPrecondition as in DecodeShard.
  absl::StatusOr<ShardValue> Read(std::uint64_t snapshot, const ShardIdentity& identity) const;

 private:
  [[nodiscard]] absl::StatusOr<bool> Complete(std::uint64_t snapshot) const;

  const std::uint64_t job_uid_;
  storage::KvStore& store_;
};

}  // namespace adamant::parameter_server
