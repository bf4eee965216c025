// PushTracker and WorkTracker against servers that lose streams, answer late, restart with what
// they had stored, or move their shards.

#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "services/common/base/rng.h"
#include "services/worker/core/push_tracker.h"
#include "services/worker/core/work_tracker.h"

namespace adamant::worker {
namespace {

constexpr std::size_t kServers = 3;
constexpr std::size_t kShards = 7;

/// What a server knows of one shard.
struct StoredShard {
  std::vector<Sequence> applied;  // in order
  [[nodiscard]] Sequence last() const { return applied.empty() ? 0 : applied.back(); }
};

class World {
 public:
  World(std::uint64_t seed, bool servers_lose)
      : rng_(seed),
        servers_lose_(servers_lose),
        layout_(MakeLayout()),
        pushes_(Options(), layout_) {
    map_.version = 1;
    map_.part_owners = {0, 1};
    map_.buckets.resize(kShards);
    for (BucketRecord& bucket : map_.buckets) {
      bucket = {.epoch = 1, .primary = static_cast<ServerSlot>(rng_.Below(kServers))};
    }
    pushes_.OnMap(map_);
    work_.OnMap(map_);
    for (ServerSlot server = 0; server < kServers; ++server) {
      pushes_.OnConnected(server);
    }
    work_.OnConnected(0);
    work_.OnConnected(1);
  }

  void Step() {
    now_ += std::chrono::milliseconds(rng_.Below(40));
    switch (rng_.Below(12)) {
      case 0:
      case 1:
        StartPush();
        break;
      case 2:
        if (rng_.Below(4) == 0) {
          BreakStream(static_cast<ServerSlot>(rng_.Below(kServers)));
        }
        break;
      case 3:
        if (rng_.Below(10) == 0) {
          MoveBucket();
        }
        break;
      case 4:
        if (servers_lose_ && rng_.Below(20) == 0) {
          RestartServers();
        }
        break;
      case 5:
        MeetDataServer();
        break;
      default:
        Deliver(static_cast<ServerSlot>(rng_.Below(kServers)));
        break;
    }
    Pump();
  }

  /// Lets everything come to rest.
  void Settle() {
    for (int i = 0; i < 100000 && !(pushes_.Idle() && work_.Idle()); ++i) {
      now_ += std::chrono::milliseconds(20);
      Deliver(static_cast<ServerSlot>(i % kServers));
      MeetDataServer();
      Pump();
    }
    EXPECT_TRUE(pushes_.Idle());
    EXPECT_TRUE(work_.Idle());
  }

  void ExpectAllAppliedOnceInOrder() const {
    for (std::size_t shard = 0; shard < kShards; ++shard) {
      std::vector<Sequence> expected;
      for (Sequence sequence = 1; sequence <= last_push_; ++sequence) {
        expected.push_back(sequence);
      }
      EXPECT_EQ(shards_[shard].applied, expected) << "shard " << shard;
    }
  }

  void ExpectEveryBatchAcknowledged() const { EXPECT_EQ(acknowledged_.size(), last_push_ * 2); }

  [[nodiscard]] std::uint64_t lost_updates() const { return pushes_.lost_updates(); }
  [[nodiscard]] std::uint64_t lost_by_servers() const { return lost_by_servers_; }

 private:
  static ShardLayout MakeLayout() {
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < kShards; ++i) {
      const std::string name = "p" + std::to_string(i);
      parameters.push_back({.name = name, .layer = name, .shape = {1}});
    }
    return ShardLayout(std::move(parameters), kShards);
  }

  static PushTrackerOptions Options() {
    PushTrackerOptions options = {.pushed = {}, .max_pushes = 2, .max_message_bytes = 8};
    for (ShardId shard = 0; shard < kShards; ++shard) {
      options.pushed.push_back({.shard = shard, .bytes = 4});
    }
    return options;
  }

  void StartPush() {
    if (pushes_.CanPush()) {
      last_push_ = pushes_.Push(0);
      work_.Trained(last_push_, {Batch(last_push_, 0), Batch(last_push_, 1)});
    }
  }

  static LeaseResult Batch(Sequence push, std::uint32_t part) {
    return {.lease = {.kind = WorkKind::kTrain,
                      .epoch = 1,
                      .part = part,
                      .index = static_cast<std::uint32_t>(push),
                      .id = push * 2 + part},
            .examples = 1};
  }

  void BreakStream(ServerSlot server) {
    pushes_.OnDisconnected(server);
    if (rng_.Below(2) == 0) {
      // Requests on their way may still be handled, answers are lost.
      while (!wires_[server].empty()) {
        Handle(server, wires_[server].front());
        wires_[server].pop_front();
      }
    }
    wires_[server].clear();
    replies_[server].clear();
    pushes_.OnConnected(server);
  }

  void MoveBucket() {
    BucketRecord& bucket = map_.buckets[rng_.Below(kShards)];
    bucket.primary = static_cast<ServerSlot>(rng_.Below(kServers));
    ++bucket.epoch;
    ++map_.version;
    if (rng_.Below(2) == 0) {
      map_.part_owners = {static_cast<ServerSlot>(rng_.Below(2)),
                          static_cast<ServerSlot>(rng_.Below(2))};
    }
    pushes_.OnMap(map_);
    work_.OnMap(map_);
  }

  void RestartServers() {
    for (StoredShard& shard : shards_) {
      const std::size_t keep =
          shard.applied.size() - rng_.Below(std::min<std::size_t>(shard.applied.size(), 3) + 1);
      lost_by_servers_ += shard.applied.size() - keep;
      shard.applied.resize(keep);
    }
    for (ServerSlot server = 0; server < kServers; ++server) {
      pushes_.OnDisconnected(server);
      wires_[server].clear();
      replies_[server].clear();
      pushes_.OnConnected(server);
    }
  }

  void Deliver(ServerSlot server) {
    if (!wires_[server].empty()) {
      replies_[server].push_back(Handle(server, wires_[server].front()));
      wires_[server].pop_front();
    }
    if (!replies_[server].empty() && rng_.Below(2) == 0) {
      const PushReply reply = replies_[server].front();
      replies_[server].pop_front();
      ASSERT_TRUE(pushes_.OnPushReply(reply, now_).ok());
    }
  }

  PushReply Handle(ServerSlot server, const PushMessage& push) {
    PushReply reply = {.request = push.request};
    for (const ShardUpdate& update : push.updates) {
      ShardAck& ack = reply.acks.emplace_back();
      ack.shard = update.shard;
      StoredShard& shard = shards_[update.shard];
      if (map_.buckets[layout_.shards()[update.shard].bucket].primary != server) {
        ack.outcome = UpdateOutcome::kNotPrimary;
      } else if (rng_.Below(20) == 0) {
        ack.outcome = UpdateOutcome::kNotReady;
      } else if (push.sequence <= shard.last()) {
        ack.outcome = UpdateOutcome::kDuplicate;
      } else if (push.sequence == shard.last() + 1 || update.after_loss) {
        shard.applied.push_back(push.sequence);
      } else {
        ack.outcome = UpdateOutcome::kUnexpectedSequence;
        ack.expected = shard.last() + 1;
      }
    }
    return reply;
  }

  void MeetDataServer() {
    if (!acknowledgements_.empty()) {
      const AcknowledgeMessage message = acknowledgements_.front();
      acknowledgements_.pop_front();
      std::vector<Lease> leases;
      for (const LeaseResult& result : message.results) {
        leases.push_back(result.lease);
        acknowledged_.insert(result.lease.id);
      }
      if (rng_.Below(5) != 0) {  // else the answer is lost
        work_.OnAcknowledged(leases);
      }
    }
  }

  void Pump() {
    for (const RetiredPush& push : pushes_.TakeRetired()) {
      EXPECT_FALSE(push.refused);
      work_.Retired(push.sequence, push.refused, now_);
    }
    for (PushTracker::Message& message : pushes_.Poll(now_)) {
      PushMessage& push = std::get<PushMessage>(message);
      wires_[push.server].push_back(std::move(push));
    }
    for (WorkTracker::Message& message : work_.Poll(now_)) {
      const auto& acknowledge = std::get<AcknowledgeMessage>(message);
      for (const LeaseResult& result : acknowledge.results) {
        if (!servers_lose_) {
          ExpectApplied(result.lease.index);
        }
      }
      acknowledgements_.push_back(acknowledge);
    }
  }

  void ExpectApplied(Sequence push) const {
    for (const StoredShard& shard : shards_) {
      EXPECT_GE(shard.last(), push) << "acknowledged before it was applied everywhere";
    }
  }

  Rng rng_;
  const bool servers_lose_;
  const ShardLayout layout_;
  PushTracker pushes_;
  WorkTracker work_;
  ClusterMap map_;
  Clock::TimePoint now_{};
  Sequence last_push_ = 0;
  StoredShard shards_[kShards];
  std::deque<PushMessage> wires_[kServers];
  std::deque<PushReply> replies_[kServers];
  std::deque<AcknowledgeMessage> acknowledgements_;
  std::set<std::uint64_t> acknowledged_;
  std::uint64_t lost_by_servers_ = 0;
};

TEST(TrackersPropertyTest, EveryUpdateIsAppliedOnceInOrderAndItsBatchesAcknowledgedAfterwards) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed, /*servers_lose=*/false);
    for (int i = 0; i < 400; ++i) {
      world.Step();
    }
    world.Settle();
    world.ExpectAllAppliedOnceInOrder();
    world.ExpectEveryBatchAcknowledged();
    EXPECT_EQ(world.lost_updates(), 0u);
    if (testing::Test::HasFailure()) {
      return;
    }
  }
}

TEST(TrackersPropertyTest, ServersThatForgetAcknowledgedUpdatesStopNothing) {
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed, /*servers_lose=*/true);
    for (int i = 0; i < 400; ++i) {
      world.Step();
    }
    world.Settle();
    world.ExpectEveryBatchAcknowledged();
    EXPECT_LE(world.lost_updates(), world.lost_by_servers());
    lost += world.lost_updates();
    if (testing::Test::HasFailure()) {
      return;
    }
  }
  EXPECT_GT(lost, 0u);
}

}  // namespace
}  // namespace adamant::worker
