#include "services/parameter_server/core/parameter_server.h"

#include <algorithm>
#include <string>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/lazy_writer.h"
#include "services/parameter_server/core/shard_record.h"

namespace adamant::parameter_server {

ParameterServer::ParameterServer(ServerOptions options, storage::KvStore& store, const Clock& clock)
    : options_(std::move(options)),
      layout_(options_.parameters, options_.buckets),
      store_(store),
      dirty_(options_.flush, clock, options_.flush_due_changed),
      buckets_(layout_, options_.slot),
      records_(options_.job_uid, options_.buckets, store),
      snapshots_(static_cast<ShardId>(layout_.shards().size()), store),
      flusher_(buckets_, dirty_, store, clock) {
  ADAMANT_CHECK(options_.optimisers.size() == layout_.parameters().size(),
                "every parameter has an optimiser");
}

ShardIdentity ParameterServer::IdentityOf(const Shard& shard) const {
  const ParameterOptimiser& optimiser = options_.optimisers[shard.tensor];
  const bool here = optimiser.location == OptimiserLocation::kServer;
  return {.job_uid = options_.job_uid,
          .shard = shard.id,
          .values = shard.size(),
          .state = here ? shard.size() * StatePerWeight(optimiser.kind) : 0};
}

absl::StatusOr<std::vector<std::shared_ptr<LiveShard>>> ParameterServer::CreateBucket(
    BucketId bucket) {
  std::vector<std::shared_ptr<LiveShard>> shards;
  LazyWriter writer(store_);
  for (const ShardId id : buckets_.ShardsOf(bucket)) {
    const Shard& shard = layout_.shards()[id];
    const ShardIdentity identity = IdentityOf(shard);
    ShardContent content{.values = std::vector<float>(identity.values),
                         .state = std::vector<float>(identity.state)};
    InitialiseShard(
        options_.seed, layout_.parameters()[shard.tensor], shard, std::span(content.values));
    std::string record = EncodeShard(identity, content);
    SealShard(record);
    ADAMANT_RETURN_IF_ERROR(writer.Put(LiveShardKey(shard.id), std::move(record)));
    shards.push_back(std::make_shared<LiveShard>(identity, std::move(content), dirty_));
  }
  ADAMANT_RETURN_IF_ERROR(writer.Finish());
  return shards;
}

absl::StatusOr<ShardContent> ParameterServer::Load(const ShardIdentity& identity) const {
  const auto stored = store_.Get(LiveShardKey(identity.shard));
  if (absl::IsNotFound(stored.status())) {
    return absl::NotFoundError("stored shard " + std::to_string(identity.shard) + " is missing");
  }
  ADAMANT_RETURN_IF_ERROR(stored.status());
  ADAMANT_ASSIGN_OR_RETURN(ShardRecord record, DecodeShard(identity, *stored));
  return ShardContent{.version = record.version,
                      .sequences = std::move(record.sequences),
                      .values = {record.values.begin(), record.values.end()},
                      .state = {record.state.begin(), record.state.end()}};
}

absl::StatusOr<std::vector<std::shared_ptr<LiveShard>>> ParameterServer::LoadBucket(
    BucketId bucket) {
  std::vector<std::shared_ptr<LiveShard>> shards;
  for (const ShardId id : buckets_.ShardsOf(bucket)) {
    const ShardIdentity identity = IdentityOf(layout_.shards()[id]);
    ADAMANT_ASSIGN_OR_RETURN(ShardContent content, Load(identity));
    shards.push_back(std::make_shared<LiveShard>(identity, std::move(content), dirty_));
  }
  ADAMANT_RETURN_IF_ERROR(records_.Load(bucket));
  return shards;
}

absl::Status ParameterServer::Prepare() {
  for (const BucketTable::Task& task : buckets_.Tasks()) {
    auto shards = task.create ? CreateBucket(task.bucket) : LoadBucket(task.bucket);
    if (shards.ok()) {
      buckets_.Prepared(task.bucket, *std::move(shards));
    } else if (task.create) {
      return shards.status();
    } else {
      buckets_.Lost(task.bucket, std::string(shards.status().message()));
    }
  }
  return absl::OkStatus();
}

absl::Status ParameterServer::Admit(const Writer& writer) {
  if (writer.slot >= options_.writers) {
    return absl::InvalidArgumentError("worker slot " + std::to_string(writer.slot) +
                                      " is outside the job, which has " +
                                      std::to_string(options_.writers));
  }
  const MutexLock lock(mutex_);
  std::uint64_t& newest = newest_[writer.slot];
  if (writer.incarnation < newest) {
    return absl::FailedPreconditionError(
        "worker slot " + std::to_string(writer.slot) + " has been taken over by incarnation " +
        std::to_string(newest) + "; this is " + std::to_string(writer.incarnation));
  }
  newest = writer.incarnation;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ShardValue>> ParameterServer::Fetch(const Writer* asking,
                                                               std::span<const ShardId> shards,
                                                               std::uint64_t snapshot) const {
  std::vector<ShardValue> values;
  for (const ShardId id : shards) {
    if (id >= layout_.shards().size()) {
      return absl::InvalidArgumentError("shard " + std::to_string(id) +
                                        " is asked for, the model has " +
                                        std::to_string(layout_.shards().size()));
    }
    const BucketTable::Route route = buckets_.Find(id);
    if (route.access != BucketTable::Access::kReady) {
      const bool elsewhere = route.access == BucketTable::Access::kNotPrimary;
      values.push_back(
          {.shard = id,
           .outcome = elsewhere ? FetchOutcome::kNotPrimary : FetchOutcome::kNotReady});
    } else if (snapshot == 0) {
      values.push_back(route.shard->Read(asking));
    } else {
      ADAMANT_ASSIGN_OR_RETURN(ShardValue value,
                               snapshots_.Read(snapshot, route.shard->identity()));
      values.push_back(std::move(value));
    }
  }
  return values;
}

BucketTable::Access ParameterServer::AccessOfRecord(std::string_view key) const {
  return buckets_.AccessOf(BucketOfRecord(key, layout_.buckets()));
}

absl::Status ParameterServer::TakeSnapshot(std::uint64_t snapshot,
                                           std::uint64_t keep_from,
                                           std::span<const std::uint64_t> keep) {
  ADAMANT_ASSIGN_OR_RETURN(const auto shards, buckets_.AllReady());
  ADAMANT_RETURN_IF_ERROR(snapshots_.Take(snapshot, shards));
  return snapshots_.Drop(keep_from, keep);
}

}  // namespace adamant::parameter_server
