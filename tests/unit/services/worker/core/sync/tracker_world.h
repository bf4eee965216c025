#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/base/rng.h"
#include "services/worker/core/intake/work_tracker.h"
#include "services/worker/core/sync/fetches/fetch_tracker.h"
#include "services/worker/core/sync/pushes/push_tracker.h"
#include "services/worker/core/sync/routing/routes.h"
#include "tests/unit/services/worker/core/model_servers.h"

namespace adamant::worker {

/// What may happen beside broken streams, late answers and new primaries.
struct Faults {
  bool retain = true;
  bool deaths = false;     ///< processes die
  bool disk_loss = false;  ///< and their disks
};

/// The trackers of one worker and ModelServers, under events drawn from a seed.
class TrackerWorld {
 public:
  TrackerWorld(std::uint64_t seed, const Faults& faults)
      : rng_(seed),
        faults_(faults),
        layout_(MakeLayout()),
        routes_(layout_),
        pushes_(Options(faults.retain), layout_, routes_),
        fetches_(8, layout_, routes_),
        servers_(rng_) {
    placement_.part_owners = {0, 1};
    SendPlacement();
    for (ServerSlot server = 0; server < kServers; ++server) {
      routes_.OnConnected(server);
    }
    work_.OnConnected(0);
    work_.OnConnected(1);
  }

  void Step() {
    now_ += std::chrono::milliseconds(rng_.Below(40));
    switch (rng_.Below(16)) {
      case 0:
      case 1:
        StartPush();
        break;
      case 2:
        MeetDataServer();
        break;
      case 3:
        HappenRarely();
        break;
      case 4:
        servers_.Flush(AnyServer(), AnyShard());
        break;
      case 5:
        servers_.Hear(AnyServer());
        break;
      case 6:
        SendPlacement();
        break;
      default:
        Deliver(AnyServer());
        break;
    }
    Pump();
  }

  /// Lets everything come to rest, with a last push that finds all that was lost.
  void Settle() {
    bool last = false;
    for (int i = 0; i < 100000 && !(last && pushes_.Idle() && work_.Idle()); ++i) {
      if (!last && pushes_.CanPush()) {
        StartPush();
        last = true;
      }
      now_ += std::chrono::milliseconds(20);
      SendPlacement();
      servers_.Hear(static_cast<ServerSlot>(i % kServers));
      Deliver(static_cast<ServerSlot>(i % kServers));
      MeetDataServer();
      Pump();
    }
    EXPECT_TRUE(pushes_.Idle());
    EXPECT_TRUE(work_.Idle());
  }

  void ExpectAppliedOnceInOrderOrCountedAsLost() const {
    std::uint64_t missing = 0;
    for (ShardId shard = 0; shard < kShards; ++shard) {
      const std::vector<Sequence>& applied = servers_.applied(shard);
      EXPECT_TRUE(std::ranges::is_sorted(applied, std::less_equal<>())) << "shard " << shard;
      ASSERT_FALSE(applied.empty());
      EXPECT_EQ(applied.back(), pushes_.last_sequence()) << "shard " << shard;
      missing += pushes_.last_sequence() - applied.size();
    }
    EXPECT_EQ(pushes_.lost_updates(), missing);
  }

  void ExpectEveryBatchAcknowledged() const {
    EXPECT_EQ(acknowledged_.size(), pushes_.last_sequence() * 2);
  }

  [[nodiscard]] const PushTracker& pushes() const { return pushes_; }
  [[nodiscard]] std::uint64_t rolled_back() const { return servers_.rolled_back(); }
  [[nodiscard]] Sequence released() { return pushes_.Release(); }

 private:
  static constexpr ServerSlot kServers = ModelServers::kServers;
  static constexpr ShardId kShards = ModelServers::kShards;

  static ShardLayout MakeLayout() {
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < kShards; ++i) {
      const std::string name = "p" + std::to_string(i);
      parameters.push_back({.name = name, .layer = name, .shape = {1}});
    }
    return ShardLayout(std::move(parameters), 64);
  }

  static PushTrackerOptions Options(bool retain) {
    PushTrackerOptions options = {
        .pushed = {}, .max_pushes = 2, .max_message_bytes = 8, .retain = retain};
    for (ShardId shard = 0; shard < kShards; ++shard) {
      options.pushed.push_back({.shard = shard, .bytes = 4});
    }
    return options;
  }

  ServerSlot AnyServer() { return static_cast<ServerSlot>(rng_.Below(kServers)); }
  ShardId AnyShard() { return static_cast<ShardId>(rng_.Below(kShards)); }

  void StartPush() {
    if (pushes_.CanPush()) {
      const Sequence push = pushes_.Push({});
      work_.Trained(push, {Batch(push, 0), Batch(push, 1)});
    }
  }

  static LeaseResult Batch(Sequence push, std::uint32_t part) {
    return {.lease = {.batch = {.kind = WorkKind::kTrain,
                                .epoch = 1,
                                .part = part,
                                .index = static_cast<std::uint32_t>(push)},
                      .id = push * 2 + part},
            .examples = 1};
  }

  void HappenRarely() {
    switch (rng_.Below(10)) {
      case 0:
        BreakStream(AnyServer());
        break;
      case 1:
        servers_.Depose(AnyShard());
        break;
      case 2:
      case 3:
        servers_.ChangeMembers(AnyShard());
        break;
      case 4:
        placement_.part_owners = {static_cast<ServerSlot>(rng_.Below(2)),
                                  static_cast<ServerSlot>(rng_.Below(2))};
        break;
      case 5:
        if (faults_.deaths) {
          KillSome();
        }
        break;
      case 6:
        if (faults_.disk_loss) {
          servers_.LoseDisk(AnyServer(), AnyShard());
        }
        break;
      case 7:
        pushes_.AskForFlush(rng_.Below(2) == 0);
        break;
      default:
        if (fetch_ == 0) {
          fetch_ = fetches_.Fetch(0);
        }
        break;
    }
  }

  void KillSome() {
    std::set<ServerSlot> some = {AnyServer()};
    while (rng_.Below(2) == 0) {
      some.insert(AnyServer());
    }
    const std::set<ServerSlot> dead = servers_.Kill(some);
    // Streams may break before the worker hears from the controller, or later.
    if (rng_.Below(2) == 0) {
      SendPlacement();
    }
    for (const ServerSlot server : dead) {
      Disconnect(server);
      wires_[server].clear();
      replies_[server].clear();
      routes_.OnConnected(server);
    }
  }

  void Disconnect(ServerSlot server) {
    routes_.OnDisconnected(server);
    pushes_.OnDisconnected(server);
    fetches_.OnDisconnected(server);
  }

  void BreakStream(ServerSlot server) {
    Disconnect(server);
    if (rng_.Below(2) == 0) {
      // Requests on their way may still be handled, answers are lost.
      for (const ModelServers::Request& request : wires_[server]) {
        servers_.Handle(server, request);
      }
    }
    servers_.Hear(server);  // no answers but those on the stream that is gone
    servers_.TakeReplies(server);
    wires_[server].clear();
    replies_[server].clear();
    routes_.OnConnected(server);
  }

  void SendPlacement() {
    ++placement_.version;
    placement_.buckets.assign(layout_.buckets(), {});
    const std::vector<BucketPlacement> placements = servers_.Placements();
    for (const Shard& shard : layout_.shards()) {
      placement_.buckets[shard.bucket] = placements[shard.id];
    }
    routes_.OnPlacement(placement_);
    pushes_.OnPlacement();
    fetches_.OnPlacement();
    work_.OnPlacement(placement_);
  }

  void Deliver(ServerSlot server) {
    if (!wires_[server].empty()) {
      servers_.Handle(server, wires_[server].front());
      wires_[server].pop_front();
    }
    for (ModelServers::Reply& reply : servers_.TakeReplies(server)) {
      replies_[server].push_back(std::move(reply));
    }
    if (!replies_[server].empty() && rng_.Below(2) == 0) {
      const ModelServers::Reply reply = std::move(replies_[server].front());
      replies_[server].pop_front();
      std::visit([this](const auto& r) { OnReply(r); }, reply);
    }
  }

  void OnReply(const PushReply& reply) { ASSERT_TRUE(pushes_.OnReply(reply, now_).ok()); }

  void OnReply(const FlushReply& reply) { ASSERT_TRUE(pushes_.OnReply(reply).ok()); }

  void OnReply(const FetchReply& reply) {
    const auto progress = fetches_.OnReply(reply, now_);
    ASSERT_TRUE(progress.ok());
    for (const std::size_t i : progress->fresh) {
      const FetchedShard& value = reply.shards[i];
      EXPECT_GE(value.configuration_version, value_version_[value.shard])
          << "a value of an older epoch";
      value_version_[value.shard] = value.configuration_version;
      pushes_.OnValue(reply.request, value);
    }
    if (progress->complete) {
      fetches_.Drop(std::exchange(fetch_, 0));
    }
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
    const Sequence released = pushes_.Release();
    for (PushTracker::Message& message : pushes_.Poll(now_)) {
      if (const auto* push = std::get_if<PushMessage>(&message)) {
        EXPECT_GT(push->sequence(), released) << "its content is gone";
        wires_[push->server].emplace_back(*push);
      } else {
        const auto& flush = std::get<FlushMessage>(message);
        wires_[flush.server].emplace_back(flush);
      }
    }
    for (FetchMessage& fetch : fetches_.Poll(now_)) {
      wires_[fetch.server].emplace_back(fetch);
    }
    for (WorkTracker::Message& message : work_.Poll(now_)) {
      const auto& acknowledge = std::get<AcknowledgeMessage>(message);
      for (const LeaseResult& result : acknowledge.results) {
        if (!faults_.deaths) {
          ExpectApplied(result.lease.batch.index);
        }
      }
      acknowledgements_.push_back(acknowledge);
    }
  }

  void ExpectApplied(Sequence push) const {
    for (ShardId shard = 0; shard < kShards; ++shard) {
      EXPECT_TRUE(std::ranges::binary_search(servers_.applied(shard), push))
          << "acknowledged before it was applied everywhere";
    }
  }

  Rng rng_;
  const Faults faults_;
  const ShardLayout layout_;
  Routes routes_;
  PushTracker pushes_;
  FetchTracker fetches_;
  WorkTracker work_;
  ModelServers servers_;
  PlacementView placement_;
  Clock::TimePoint now_{};
  FetchId fetch_ = 0;
  ConfigurationVersion value_version_[kShards] = {};
  std::deque<ModelServers::Request> wires_[kServers];
  std::deque<ModelServers::Reply> replies_[kServers];
  std::deque<AcknowledgeMessage> acknowledgements_;
  std::set<std::uint64_t> acknowledged_;
};

}  // namespace adamant::worker
