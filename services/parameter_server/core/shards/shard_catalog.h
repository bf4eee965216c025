#pragma once

#include <cstdint>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/shards/dirty_shards.h"
#include "services/parameter_server/core/shards/live_shard.h"
#include "services/parameter_server/core/shards/shard_content.h"

namespace adamant::parameter_server {

/// The shards of the model: where each lies, what a record of it must hold, and how it comes into
/// memory. Constant.
/// Threads: any.
class ShardCatalog {
 public:
  struct Options {
    std::uint64_t job_uid = 0;
    std::uint64_t seed = 0;  ///< of the initial values
    std::vector<Parameter> parameters = {};
    std::uint32_t buckets = 1;
    std::vector<ParameterOptimiser> optimisers = {};  ///< one per parameter
    bool durable_at_once = false;                     ///< see ShardRule
  };

  /// `dirty` is told of changed shards. It must outlive this, and this all shards made here.
  ShardCatalog(Options options, DirtyShards& dirty);
  ShardCatalog(const ShardCatalog&) = delete;
  ShardCatalog& operator=(const ShardCatalog&) = delete;

  [[nodiscard]] const ShardLayout& layout() const { return layout_; }
  [[nodiscard]] std::uint64_t job_uid() const { return options_.job_uid; }
  [[nodiscard]] bool durable_at_once() const { return options_.durable_at_once; }

  /// The shards of a bucket, in order of their positions in it.
  [[nodiscard]] const std::vector<ShardId>& ShardsOf(BucketId bucket) const {
    return shards_of_[bucket];
  }
  [[nodiscard]] BucketId BucketOf(ShardId shard) const { return layout_.shards()[shard].bucket; }
  [[nodiscard]] std::uint32_t PositionOf(ShardId shard) const { return positions_[shard]; }

  /// By shard.
  [[nodiscard]] const std::vector<std::uint32_t>& positions() const { return positions_; }

  [[nodiscard]] const ParameterOptimiser& OptimiserOf(ShardId shard) const {
    return options_.optimisers[layout_.shards()[shard].tensor];
  }
  [[nodiscard]] ShardIdentity IdentityOf(ShardId shard) const;

  /// Of a bucket's shards, by position.
  [[nodiscard]] std::vector<ShardIdentity> IdentitiesOf(BucketId bucket) const;

  /// Makes a shard of what was stored or sent of it.
  [[nodiscard]] LiveShardPtr Make(ShardId shard, ShardContent content) const;

  /// Makes a shard with its initial values.
  [[nodiscard]] LiveShardPtr Create(ShardId shard, std::uint64_t generation) const;

 private:
  const Options options_;
  const ShardLayout layout_;
  DirtyShards& dirty_;
  std::vector<std::vector<ShardId>> shards_of_;  // by bucket
  std::vector<std::uint32_t> positions_;         // by shard: within its bucket
};

}  // namespace adamant::parameter_server
