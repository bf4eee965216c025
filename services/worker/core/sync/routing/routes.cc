#include "services/worker/core/sync/routing/routes.h"

#include <algorithm>

namespace adamant::worker {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNotPrimaryWait{500};
constexpr milliseconds kFirstWait{50};
constexpr milliseconds kLongestWait{1000};
constexpr std::uint32_t kMostDoublings = 5;

}  // namespace

Clock::Duration RetryWait(std::uint32_t refusals) {
  return std::min(kFirstWait * (1 << std::min(refusals, kMostDoublings)), kLongestWait);
}

Routes::Routes(const ShardLayout& layout)
    : layout_(layout), seen_version_(layout.buckets(), 0), gates_(layout.shards().size()) {}

void Routes::OnPlacement(const PlacementView& placement) {
  if (placement.version < placement_.version) {
    return;
  }
  for (const Shard& shard : layout_.shards()) {
    const BucketPlacement* const before = PlacementOf(shard.id);
    if (shard.bucket < placement.buckets.size() &&
        (before == nullptr || before->version != placement.buckets[shard.bucket].version)) {
      gates_[shard.id] = {};
    }
  }
  placement_ = placement;
  for (BucketId bucket = 0; bucket < placement_.buckets.size(); ++bucket) {
    See(bucket, placement_.buckets[bucket].version);
  }
}

void Routes::OnConnected(ServerSlot server) {
  if (server >= connected_.size()) {
    connected_.resize(server + 1, false);
  }
  connected_[server] = true;
}

void Routes::OnDisconnected(ServerSlot server) {
  if (server < connected_.size()) {
    connected_[server] = false;
  }
}

void Routes::See(BucketId bucket, ConfigurationVersion configuration_version) {
  if (bucket < seen_version_.size()) {
    seen_version_[bucket] = std::max(seen_version_[bucket], configuration_version);
  }
}

void Routes::OnServed(ShardId shard, ConfigurationVersion configuration_version) {
  See(layout_.shards()[shard].bucket, configuration_version);
  gates_[shard] = {};
}

void Routes::OnNotPrimary(ShardId shard,
                          ConfigurationVersion configuration_version,
                          Clock::TimePoint now) {
  const BucketPlacement* const placement = PlacementOf(shard);
  if (placement != nullptr && configuration_version < placement->version) {
    return OnNotReady(shard, now);  // it will hear what we have heard
  }
  gates_[shard].at = now + kNotPrimaryWait;
}

void Routes::OnNotReady(ShardId shard, Clock::TimePoint now) {
  Gate& gate = gates_[shard];
  gate.at = now + RetryWait(gate.refusals++);
}

std::optional<ServerSlot> Routes::Find(ShardId shard,
                                       Clock::TimePoint now,
                                       std::optional<Clock::TimePoint>& next) const {
  const BucketPlacement* const placement = PlacementOf(shard);
  if (placement == nullptr) {
    return std::nullopt;
  }
  if (const Clock::TimePoint at = gates_[shard].at; now < at) {
    next = next.has_value() ? std::min(*next, at) : at;
    return std::nullopt;
  }
  const ServerSlot server = placement->primary;
  return server < connected_.size() && connected_[server] ? std::optional(server) : std::nullopt;
}

const BucketPlacement* Routes::PlacementOf(ShardId shard) const {
  const BucketId bucket = layout_.shards()[shard].bucket;
  return bucket < placement_.buckets.size() ? &placement_.buckets[bucket] : nullptr;
}

bool Routes::Outdated(ShardId shard, ConfigurationVersion configuration_version) const {
  return configuration_version < seen_version_[layout_.shards()[shard].bucket];
}

}  // namespace adamant::worker
