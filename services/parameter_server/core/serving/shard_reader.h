#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/shards/dirty_shards.h"
#include "services/parameter_server/core/storage/snapshots.h"
#include "services/parameter_server/core/storage/storage_queue.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::parameter_server {

/// Reads shards for those who fetch them.
/// Threads: any.
class ShardReader {
 public:
  /// All must outlive this.
  ShardReader(BucketTable& table,
              const Snapshots& snapshots,
              StorageQueue& queue,
              DirtyShards& dirty,
              const Clock& clock);

  /// See ParameterServer.
  absl::StatusOr<std::vector<ShardValue>> Fetch(const WorkerId* asking,
                                                std::span<const ShardId> shards,
                                                std::uint64_t snapshot);
  absl::StatusOr<std::vector<ShardValue>> FetchCopies(std::span<const ShardId> shards,
                                                      std::uint64_t snapshot,
                                                      std::span<const std::uint64_t> copies);
  std::vector<PersistedShard> RequestFlush(const WorkerId& writer, std::span<const ShardId> shards);

 private:
  [[nodiscard]] absl::Status CheckShard(ShardId shard) const;
  absl::StatusOr<ShardValue> ReadSnapshot(const WorkerId* asking,
                                          std::uint64_t snapshot,
                                          const ShardIdentity& identity);
  absl::StatusOr<ShardValue> ReadCopy(ShardId shard,
                                      std::uint64_t snapshot,
                                      std::uint64_t checksum);

  BucketTable& table_;
  const Snapshots& snapshots_;
  StorageQueue& queue_;
  DirtyShards& dirty_;
  const Clock& clock_;
};

}  // namespace adamant::parameter_server
