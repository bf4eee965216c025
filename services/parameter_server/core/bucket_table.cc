#include "services/parameter_server/core/bucket_table.h"

#include <algorithm>
#include <utility>

namespace adamant::parameter_server {

BucketTable::BucketTable(const ShardLayout& layout, std::uint32_t slot)
    : layout_(layout),
      slot_(slot),
      members_(layout.buckets()),
      buckets_(layout.buckets()),
      shards_(layout.shards().size()) {
  for (const Shard& shard : layout.shards()) {
    members_[shard.bucket].push_back(shard.id);
  }
}

void BucketTable::Update(std::span<const BucketRecord> records) {
  const MutexLock lock(mutex_);
  for (BucketId bucket = 0; bucket < std::min(records.size(), buckets_.size()); ++bucket) {
    if (records[bucket].epoch >= buckets_[bucket].record.epoch) {
      UpdateBucket(bucket, records[bucket]);
    }
  }
}

void BucketTable::UpdateBucket(BucketId id, const BucketRecord& record) {
  Bucket& bucket = buckets_[id];
  bucket.record = record;
  if (record.epoch == 0 || record.primary != slot_) {
    bucket.phase = Phase::kElsewhere;
    for (const ShardId shard : members_[id]) {
      shards_[shard] = nullptr;
    }
    return;
  }
  const bool unprepared = bucket.phase == Phase::kElsewhere || bucket.phase == Phase::kCreating;
  if (unprepared) {
    bucket.phase = record.created ? Phase::kLoading : Phase::kCreating;
  } else if (bucket.phase == Phase::kCreated && record.created) {
    bucket.phase = Phase::kReady;
  }
}

std::vector<BucketTable::Task> BucketTable::Tasks() const {
  const MutexLock lock(mutex_);
  std::vector<Task> tasks;
  for (BucketId bucket = 0; bucket < buckets_.size(); ++bucket) {
    const Phase phase = buckets_[bucket].phase;
    if (phase == Phase::kCreating || phase == Phase::kLoading) {
      tasks.push_back({bucket, phase == Phase::kCreating});
    }
  }
  return tasks;
}

void BucketTable::Prepared(BucketId id, std::vector<std::shared_ptr<LiveShard>> shards) {
  const MutexLock lock(mutex_);
  Bucket& bucket = buckets_[id];
  if (bucket.phase != Phase::kCreating && bucket.phase != Phase::kLoading) {
    return;  // taken away meanwhile
  }
  bucket.phase = bucket.phase == Phase::kLoading ? Phase::kReady : Phase::kCreated;
  for (std::shared_ptr<LiveShard>& shard : shards) {
    const ShardId shard_id = shard->identity().shard;
    shards_[shard_id] = std::move(shard);
  }
}

void BucketTable::Lost(BucketId id, std::string detail) {
  const MutexLock lock(mutex_);
  Bucket& bucket = buckets_[id];
  if (bucket.phase == Phase::kCreating || bucket.phase == Phase::kLoading) {
    bucket.phase = Phase::kLost;
    bucket.detail = std::move(detail);
  }
}

std::vector<BucketReport> BucketTable::Reports() const {
  const MutexLock lock(mutex_);
  std::vector<BucketReport> reports;
  for (BucketId id = 0; id < buckets_.size(); ++id) {
    const Bucket& bucket = buckets_[id];
    const bool lost = bucket.phase == Phase::kLost;
    if (lost || bucket.phase == Phase::kCreated || bucket.phase == Phase::kReady) {
      reports.push_back({id, bucket.record.epoch, lost, bucket.detail});
    }
  }
  return reports;
}

BucketTable::Route BucketTable::Find(ShardId shard, std::uint64_t epoch) const {
  const MutexLock lock(mutex_);
  const std::uint64_t own = buckets_[layout_.shards()[shard].bucket].record.epoch;
  if (epoch != own) {
    // A worker with an older map must learn the new one; one with a newer map must wait for us.
    return {epoch < own ? Access::kNotPrimary : Access::kNotReady, nullptr};
  }
  return FindLocked(shard);
}

BucketTable::Route BucketTable::Find(ShardId shard) const {
  const MutexLock lock(mutex_);
  return FindLocked(shard);
}

BucketTable::Route BucketTable::FindLocked(ShardId shard) const {
  switch (buckets_[layout_.shards()[shard].bucket].phase) {
    case Phase::kElsewhere:
      return {Access::kNotPrimary, nullptr};
    case Phase::kReady:
      return {Access::kReady, shards_[shard]};
    default:
      return {Access::kNotReady, nullptr};
  }
}

BucketTable::Access BucketTable::AccessOf(BucketId bucket) const {
  const MutexLock lock(mutex_);
  switch (buckets_[bucket].phase) {
    case Phase::kElsewhere:
      return Access::kNotPrimary;
    case Phase::kReady:
      return Access::kReady;
    default:
      return Access::kNotReady;
  }
}

std::shared_ptr<LiveShard> BucketTable::InMemory(ShardId shard) const {
  const MutexLock lock(mutex_);
  return shards_[shard];
}

absl::StatusOr<std::vector<std::shared_ptr<LiveShard>>> BucketTable::AllReady() const {
  const MutexLock lock(mutex_);
  for (BucketId bucket = 0; bucket < buckets_.size(); ++bucket) {
    const Phase phase = buckets_[bucket].phase;
    if (phase != Phase::kReady && phase != Phase::kElsewhere) {
      return absl::UnavailableError("bucket " + std::to_string(bucket) + " is not ready");
    }
  }
  std::vector<std::shared_ptr<LiveShard>> ready;
  std::ranges::copy_if(
      shards_, std::back_inserter(ready), [](const auto& s) { return s != nullptr; });
  return ready;
}

}  // namespace adamant::parameter_server
