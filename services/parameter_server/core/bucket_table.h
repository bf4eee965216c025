#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/live_shard.h"
#include "services/parameter_server/core/messages.h"

namespace adamant::parameter_server {

/// Which buckets this server holds, how far each is, and the shards of those that are prepared.
/// Threads: any.
class BucketTable {
 public:
  /// Whether a bucket can be used here.
  enum class Access { kReady, kNotPrimary, kNotReady };

  /// What the map asks for and is not done.
  struct Task {
    BucketId bucket = 0;
    bool create = false;  ///< else load what was created before
  };

  struct Route {
    Access access = Access::kNotPrimary;
    std::shared_ptr<LiveShard> shard;  ///< if ready
  };

  /// `layout` must outlive this. `slot`: of this server.
  BucketTable(const ShardLayout& layout, std::uint32_t slot);

  /// The shards of a bucket, by id.
  [[nodiscard]] std::span<const ShardId> ShardsOf(BucketId bucket) const {
    return members_[bucket];
  }

  /// Takes over a map, `records[i]` being bucket i. Lines of a lower epoch than known are ignored.
  void Update(std::span<const BucketRecord> records);

  [[nodiscard]] std::vector<Task> Tasks() const;

  /// The bucket of a task is on disk and in memory. A created one is used once the map says so.
  void Prepared(BucketId bucket, std::vector<std::shared_ptr<LiveShard>> shards);

  /// The bucket of a task cannot be loaded.
  void Lost(BucketId bucket, std::string detail);

  /// Every bucket of this server that is prepared or lost.
  [[nodiscard]] std::vector<BucketReport> Reports() const;

  /// Finds a shard for a worker whose map has `epoch` for its bucket. The shard must exist.
  [[nodiscard]] Route Find(ShardId shard, std::uint64_t epoch) const;

  /// Finds a shard under whatever epoch.
  [[nodiscard]] Route Find(ShardId shard) const;

  [[nodiscard]] Access AccessOf(BucketId bucket) const;

  /// The shard if it is in memory, used yet or not; else null.
  [[nodiscard]] std::shared_ptr<LiveShard> InMemory(ShardId shard) const;

  /// All shards of ready buckets, by id. Unavailable if a bucket of this server is not ready.
  [[nodiscard]] absl::StatusOr<std::vector<std::shared_ptr<LiveShard>>> AllReady() const;

 private:
  enum class Phase {
    kElsewhere,
    kCreating,
    kCreated,  ///< on disk, but the map does not say so yet
    kLoading,
    kReady,
    kLost,
  };

  struct Bucket {
    BucketRecord record;
    Phase phase = Phase::kElsewhere;
    std::string detail;
  };

  void UpdateBucket(BucketId bucket, const BucketRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Route FindLocked(ShardId shard) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const ShardLayout& layout_;
  const std::uint32_t slot_;
  std::vector<std::vector<ShardId>> members_;  // by bucket

  // Guarded.
  mutable Mutex mutex_;
  std::vector<Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<LiveShard>> shards_ ABSL_GUARDED_BY(mutex_);  // by id
};

}  // namespace adamant::parameter_server
