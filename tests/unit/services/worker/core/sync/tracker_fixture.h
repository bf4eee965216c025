#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "services/common/base/ids.h"
#include "services/worker/core/sync/fetches/fetch_tracker.h"
#include "services/worker/core/sync/pushes/push_tracker.h"
#include "services/worker/core/sync/routing/routes.h"

namespace adamant::worker {

/// Three shards of one element each, in buckets of their own; even ones at server 0, odd ones at
/// server 1. The versions of the buckets are 10, 11 and 12.
class TrackerTest : public testing::Test {
 protected:
  explicit TrackerTest(bool retain = false) : pushes_(Options(retain), layout_, routes_) {
    placement_.buckets.resize(16);
    for (const Shard& shard : layout_.shards()) {
      placement_.buckets[shard.bucket] = {
          .version = 10 + shard.id, .generation = 1, .primary = shard.id % 2};
    }
    SendPlacement();
    routes_.OnConnected(0);
    routes_.OnConnected(1);
  }

  static Parameter Vector(const char* name) { return {.name = name, .layer = name, .shape = {1}}; }

  static PushTrackerOptions Options(bool retain) {
    return {
        .pushed = {{.shard = 0, .bytes = 4}, {.shard = 1, .bytes = 4}, {.shard = 2, .bytes = 4}},
        .max_pushes = 2,
        .max_message_bytes = 100,
        .retain = retain};
  }

  BucketPlacement& PlacementOf(ShardId shard) {
    return placement_.buckets[layout_.shards()[shard].bucket];
  }

  void SendPlacement() {
    ++placement_.version;
    routes_.OnPlacement(placement_);
    pushes_.OnPlacement();
    fetches_.OnPlacement();
  }

  /// The bucket's primary becomes another one.
  void Move(ShardId shard, ServerSlot primary) {
    ++PlacementOf(shard).version;
    PlacementOf(shard).primary = primary;
    SendPlacement();
  }

  void Disconnect(ServerSlot server) {
    routes_.OnDisconnected(server);
    pushes_.OnDisconnected(server);
    fetches_.OnDisconnected(server);
  }

  std::vector<PushMessage> PollPushes() {
    std::vector<PushMessage> pushes;
    for (PushTracker::Message& message : pushes_.Poll(now_)) {
      pushes.push_back(std::get<PushMessage>(message));
    }
    return pushes;
  }

  std::vector<FetchMessage> PollFetches() { return fetches_.Poll(now_); }

  /// All updates of the message get this outcome under their buckets' configurations of now.
  absl::Status Answer(const PushMessage& push, PushOutcome outcome, Sequence expected = 0) {
    PushReply reply = {.request = push.request};
    for (const ShardUpdate& update : push.updates) {
      reply.acks.push_back({.shard = update.shard,
                            .outcome = outcome,
                            .expected = expected,
                            .persisted = persisted_,
                            .configuration_version = PlacementOf(update.shard).version});
    }
    return pushes_.OnReply(reply, now_);
  }

  /// Starts a push, and has all servers apply it.
  void Complete() {
    pushes_.Push({});
    for (const PushMessage& push : PollPushes()) {
      ASSERT_TRUE(Answer(push, PushOutcome::kApplied).ok());
    }
    ASSERT_EQ(pushes_.TakeRetired().size(), 1u);
    pushes_.Release();
  }

  static std::vector<Sequence> SequencesOf(const std::vector<PushMessage>& pushes) {
    std::vector<Sequence> sequences;
    for (const PushMessage& push : pushes) {
      sequences.push_back(push.sequence());
    }
    return sequences;
  }

  const ShardLayout layout_{{Vector("a"), Vector("b"), Vector("c")}, 16};
  Routes routes_{layout_};
  PushTracker pushes_;
  FetchTracker fetches_{100, layout_, routes_};
  PlacementView placement_;
  Clock::TimePoint now_{};
  Sequence persisted_ = 0;  // that servers tell of
};

}  // namespace adamant::worker
