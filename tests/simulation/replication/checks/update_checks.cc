// What of the updates must hold: each is applied once, in one order, and kept once it is
// acknowledged.

#include <algorithm>
#include <utility>

#include "tests/simulation/replication/checks/checker.h"
#include "tests/simulation/replication/world/inside.h"

namespace adamant::replication_simulation {

bool Checker::IsPrefix(ShardId shard, const ps::ShardContent& content) const {
  const std::vector<Item>& items = shards_[shard].items;
  return content.version == 0 ||
         (content.version <= items.size() && items[content.version - 1].hash == HashOf(content));
}

void Checker::Append(ShardId shard, const Taken& update) {
  ShardHistory& history = shards_[shard];
  if (!history.index.emplace(update.key, history.items.size()).second) {
    Report("I6: an update is applied twice", shard, update.key);
  }
  history.reference.Apply(update.key, update.sequence);
  history.items.push_back({.taken = update,
                           .hash = HashOf(history.reference.content()),
                           .values = HashOf(history.reference.content().values)});
}

void Checker::Applied(const ps::LoggedUpdate& update, const ps::ShardContent& content) {
  const UpdateKey key = KeyOf(update.values);
  const std::size_t known = shards_[update.shard].items.size();
  if (content.version > known + 1) {
    return Report("I7: an update is applied before the one before it", update.shard, key);
  }
  if (content.version == known + 1) {
    Append(update.shard, {.key = key, .sequence = update.sequence});
  }
  if (!IsPrefix(update.shard, content)) {
    Report("I7: servers apply different updates", update.shard, key);
  }
}

void Checker::Acknowledged(ShardId shard, const UpdateKey& key) {
  ShardHistory& history = shards_[shard];
  const auto found = history.index.find(key);
  if (found == history.index.end()) {
    return Report("I5: an update is acknowledged that is not applied", shard, key);
  }
  Item& item = history.items[found->second];
  if (item.acknowledged) {
    return;
  }
  item.acknowledged = true;
  item.acknowledged_at = scheduler_.Now();
  history.acknowledged = std::max(history.acknowledged, found->second + 1);
  ++acknowledged_;
}

bool Checker::HasAcknowledged(BucketId id, const ps::Bucket& bucket) const {
  const std::vector<ps::LiveShardPtr>& shards = bucket.content().shards;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::size_t acknowledged = shards_[setup_.shards_of[id][i]].acknowledged;
    if (VersionOf(*shards[i]) < acknowledged) {
      return false;
    }
  }
  return true;
}

void Checker::Serves(const ps::Configuration& record, const ps::Bucket& bucket, BucketId id) {
  buckets_[id].served = true;
  // Who has been replaced and has not heard may come late.
  if (record.version == buckets_[id].record.version && !HasAcknowledged(id, bucket)) {
    Report("I5: a primary lacks an acknowledged update", id, record.primary);
  }
  if (record.version == buckets_[id].record.version) {
    records_.Serves(id, bucket.content().records);
  }
}

void Checker::Read(BucketId id, const ps::ServerId& server, const ps::Bucket& bucket) {
  if (!HasAcknowledged(id, bucket)) {
    Report("I11: a read misses an acknowledged update", id, server);
  }
  records_.Serves(id, bucket.content().records);
}

void Checker::Fetched(const ps::ServerId& server, const ps::ShardValue& value) {
  const ShardHistory& history = shards_[value.shard];
  const BucketId bucket = layout_.shards()[value.shard].bucket;
  if (value.version < history.acknowledged) {
    Report("I11: what is read misses an acknowledged update", bucket, server);
  }
  if (value.version > 0 && (value.version > history.items.size() ||
                            history.items[value.version - 1].values != HashOf(value.values))) {
    Report("I7: what is read is not what was committed", bucket, server);
  }
}

void Checker::Truncate(ShardId shard, std::size_t updates, Clock::TimePoint safe) {
  ShardHistory& history = shards_[shard];
  if (history.items.size() <= updates) {
    return;
  }
  while (history.items.size() > updates) {
    const Item& item = history.items.back();
    if (item.acknowledged && item.acknowledged_at < safe) {
      Report("I12: a total loss takes an update that was acknowledged too long before",
             shard,
             item.taken.key);
    }
    rolled_back_ += item.acknowledged ? 1 : 0;
    history.index.erase(item.taken.key);
    history.items.pop_back();
  }
  history.acknowledged = std::min(history.acknowledged, history.items.size());
  while (history.acknowledged > 0 && !history.items[history.acknowledged - 1].acknowledged) {
    --history.acknowledged;
  }
  history.reference = ReferenceShard(setup_.optimiser);
  for (const Item& item : history.items) {
    history.reference.Apply(item.taken.key, item.taken.sequence);
  }
}

}  // namespace adamant::replication_simulation
