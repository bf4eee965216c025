#include "services/parameter_server/core/shards/shard_catalog.h"

#include <memory>
#include <span>
#include <utility>

#include "services/common/base/check.h"

namespace adamant::parameter_server {

ShardCatalog::ShardCatalog(Options options, DirtyShards& dirty)
    : options_(std::move(options)),
      layout_(options_.parameters, options_.buckets),
      dirty_(dirty),
      shards_of_(layout_.buckets()),
      positions_(layout_.shards().size()) {
  ADAMANT_CHECK(options_.optimisers.size() == layout_.parameters().size(),
                "every parameter has an optimiser");
  for (const Shard& shard : layout_.shards()) {
    positions_[shard.id] = static_cast<std::uint32_t>(shards_of_[shard.bucket].size());
    shards_of_[shard.bucket].push_back(shard.id);
  }
}

ShardIdentity ShardCatalog::IdentityOf(ShardId id) const {
  const Shard& shard = layout_.shards()[id];
  const ParameterOptimiser& optimiser = OptimiserOf(id);
  const bool here = optimiser.location == OptimiserLocation::kServer;
  return {.job_uid = options_.job_uid,
          .shard = id,
          .values = shard.size(),
          .state = here ? shard.size() * StatePerWeight(optimiser.kind) : 0};
}

std::vector<ShardIdentity> ShardCatalog::IdentitiesOf(BucketId bucket) const {
  std::vector<ShardIdentity> identities;
  for (const ShardId shard : shards_of_[bucket]) {
    identities.push_back(IdentityOf(shard));
  }
  return identities;
}

LiveShardPtr ShardCatalog::Make(ShardId id, ShardContent content) const {
  const ShardRule rule{.optimiser = &OptimiserOf(id),
                       .begin = layout_.shards()[id].begin,
                       .durable_at_once = options_.durable_at_once};
  return std::make_shared<LiveShard>(IdentityOf(id), rule, std::move(content), dirty_);
}

LiveShardPtr ShardCatalog::Create(ShardId id, std::uint64_t generation) const {
  const Shard& shard = layout_.shards()[id];
  const ShardIdentity identity = IdentityOf(id);
  ShardContent content{.generation = generation,
                       .values = std::vector<float>(identity.values),
                       .state = std::vector<float>(identity.state)};
  InitialiseShard(
      options_.seed, layout_.parameters()[shard.tensor], shard, std::span(content.values));
  return Make(id, std::move(content));
}

}  // namespace adamant::parameter_server
