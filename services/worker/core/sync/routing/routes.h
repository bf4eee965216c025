#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/messages.h"

namespace adamant::worker {

/// Returns how long to wait after one more refusal than these in a row: 50 ms, doubling, at most
/// 1 s.
Clock::Duration RetryWait(std::uint32_t refusals);

/// Places of the primaries of shards, and times from which one that has refused may be asked again.
/// Threads: one at a time.
class Routes {
 public:
  explicit Routes(const ShardLayout& layout);  // must outlive this

  // --- What happens

  /// Takes over a view unless it is older than the last. What has changed may be asked at once.
  void OnPlacement(const PlacementView& placement);
  void OnConnected(ServerSlot server);
  void OnDisconnected(ServerSlot server);

  /// The shard's primary did what was asked, under this configuration of the bucket.
  void OnServed(ShardId shard, ConfigurationVersion configuration_version);

  /// The server asked is not the primary: the next view says who is, unless the server is behind
  /// our own.
  void OnNotPrimary(ShardId shard,
                    ConfigurationVersion configuration_version,
                    Clock::TimePoint now);

  /// The primary cannot do it for now.
  void OnNotReady(ShardId shard, Clock::TimePoint now);

  // --- What follows

  /// Returns where a message about the shard may be sent now; nullopt: nowhere yet. If time opens
  /// the way, `next` is brought forward to then.
  [[nodiscard]] std::optional<ServerSlot> Find(ShardId shard,
                                               Clock::TimePoint now,
                                               std::optional<Clock::TimePoint>& next) const;

  /// Returns where the shard's bucket is by the newest view; null before it is in one.
  [[nodiscard]] const BucketPlacement* PlacementOf(ShardId shard) const;

  /// Returns whether an answer under this configuration of the bucket is older than what is known.
  [[nodiscard]] bool Outdated(ShardId shard, ConfigurationVersion configuration_version) const;

  /// Numbers of requests rise over all kinds of them.
  std::uint64_t NextRequest() { return ++last_request_; }
  [[nodiscard]] std::uint64_t last_request() const { return last_request_; }

 private:
  /// Time at which a shard that a server refused for now may be asked for again.
  struct Gate {
    Clock::TimePoint at{};
    std::uint32_t refusals = 0;  // in a row
  };

  void See(BucketId bucket, ConfigurationVersion configuration_version);

  const ShardLayout& layout_;
  PlacementView placement_;
  std::vector<ConfigurationVersion> seen_version_;  // by bucket: highest of views and answers
  std::vector<Gate> gates_;                         // by shard
  std::vector<bool> connected_;                     // by server
  std::uint64_t last_request_ = 0;
};

}  // namespace adamant::worker
