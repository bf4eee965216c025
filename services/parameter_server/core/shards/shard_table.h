#pragma once

#include <utility>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/parameter_server/core/shards/live_shard.h"

namespace adamant::parameter_server {

/// The shards in memory, by id.
/// Threads: any.
class ShardTable {
 public:
  explicit ShardTable(std::size_t shards) : shards_(shards) {}

  /// Null if it is not held.
  [[nodiscard]] LiveShardPtr Get(ShardId shard) const {
    const MutexLock lock(mutex_);
    return shards_[shard];
  }

  void Set(ShardId id, LiveShardPtr shard) {
    const MutexLock lock(mutex_);
    shards_[id] = std::move(shard);
  }

 private:
  // Guarded.
  mutable Mutex mutex_;
  std::vector<LiveShardPtr> shards_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::parameter_server
