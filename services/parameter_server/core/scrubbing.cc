#include <algorithm>

#include "services/parameter_server/core/parameter_server.h"
#include "services/parameter_server/core/session.h"

// Reading what is stored again, so that damage is found while there is a good copy: the one in
// memory, which is written anew. Entries of the log are not read: they go with the next flush.
namespace adamant::parameter_server {

Clock::TimePoint ParameterServer::ScrubDueAt() const {
  return options_.mode == PersistenceMode::kNone ? Clock::TimePoint::max() : scrub_at_;
}

void ParameterServer::Scrub() {
  const std::size_t values = layout_.shards().size() + layout_.buckets();
  const Clock::Duration share = options_.scrub.pass / static_cast<std::int64_t>(values);
  scrub_at_ = clock_.Now() + std::min(share, options_.scrub.pause);
  for (std::size_t skipped = 0; skipped < values; ++skipped) {
    const std::size_t value = scrub_next_;
    scrub_next_ = (value + 1) % values;
    const bool is_shard = value < layout_.shards().size();
    const auto shard = static_cast<ShardId>(value);
    const auto bucket = static_cast<BucketId>(is_shard ? layout_.shards()[shard].bucket
                                                       : value - layout_.shards().size());
    if (IsStored(bucket)) {
      return is_shard ? ScrubShard(shard) : ScrubRecords(bucket);
    }
  }
}

// Whether all of the bucket is on this disk, and in memory.
bool ParameterServer::IsStored(BucketId id) const {
  const MutexLock lock(mutex_);
  const Replica::Role role = buckets_[id]->replica().role();
  return role >= Replica::Role::kSecondary && role != Replica::Role::kLoading;
}

void ParameterServer::ScrubShard(ShardId id) {
  const auto stored = store_.Get(LiveShardKey(id));
  if (stored.ok() && DecodeShard(IdentityOf(id), *stored).ok()) {
    scrubbed_.bytes += stored->size();
    return;
  }
  ++scrubbed_.damaged;
  if (const LiveShardPtr shard = shard_table_.Get(id)) {
    shard->MarkDirty();
    dirty_.Hurry();
  }
}

void ParameterServer::ScrubRecords(BucketId id) {
  const auto stored = LoadRecords(options_.job_uid, id, store_);
  if (stored.ok()) {
    for (const auto& [key, record] : *stored) {
      scrubbed_.bytes += record.value.size();
    }
    return;
  }
  ++scrubbed_.damaged;
  const MutexLock lock(mutex_);
  const Bucket& bucket = *buckets_[id];
  for (const auto& [key, record] : bucket.content().records) {
    tasks_.puts.push_back({.bucket = id, .life = bucket.life(), .key = key, .done = nullptr});
  }
  driver_.WantStorage();
}

}  // namespace adamant::parameter_server
