#include "services/worker/core/push_tracker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

namespace adamant::worker {
namespace {

using std::chrono::milliseconds;

/// Three shards of one element each, in buckets of their own by number; even ones at server 0, odd
/// ones at server 1.
class PushTrackerTest : public testing::Test {
 protected:
  PushTrackerTest()
      : layout_({Vector("a"), Vector("b"), Vector("c")}, 16), tracker_(MakeTracker(100)) {
    map_.version = 1;
    map_.buckets.resize(16);
    for (const Shard& shard : layout_.shards()) {
      map_.buckets[shard.bucket] = {.epoch = 10 + shard.id, .primary = shard.id % 2};
    }
    tracker_.OnMap(map_);
    tracker_.OnConnected(0);
    tracker_.OnConnected(1);
  }

  static Parameter Vector(const char* name) { return {.name = name, .layer = name, .shape = {1}}; }

  PushTracker MakeTracker(std::uint64_t max_message_bytes) const {
    return PushTracker(
        {.pushed = {{.shard = 0, .bytes = 4}, {.shard = 1, .bytes = 4}, {.shard = 2, .bytes = 4}},
         .max_pushes = 2,
         .max_message_bytes = max_message_bytes},
        layout_);
  }

  std::vector<PushMessage> PollPushes() {
    std::vector<PushMessage> pushes;
    for (PushTracker::Message& message : tracker_.Poll(now_)) {
      pushes.push_back(std::get<PushMessage>(message));
    }
    return pushes;
  }

  std::vector<FetchMessage> PollFetches() {
    std::vector<FetchMessage> fetches;
    for (PushTracker::Message& message : tracker_.Poll(now_)) {
      fetches.push_back(std::get<FetchMessage>(message));
    }
    return fetches;
  }

  absl::Status Answer(const PushMessage& push, UpdateOutcome outcome, Sequence expected = 0) {
    PushReply reply = {.request = push.request};
    for (const ShardUpdate& update : push.updates) {
      reply.acks.push_back({.shard = update.shard, .outcome = outcome, .expected = expected});
    }
    return tracker_.OnPushReply(reply, now_);
  }

  /// Starts a push, and has all servers apply it.
  void Complete() {
    tracker_.Push(0);
    for (const PushMessage& push : PollPushes()) {
      ASSERT_TRUE(Answer(push, UpdateOutcome::kApplied).ok());
    }
    ASSERT_EQ(tracker_.TakeRetired().size(), 1u);
  }

  const ShardLayout layout_;
  ClusterMap map_;
  PushTracker tracker_;
  Clock::TimePoint now_{};
};

TEST_F(PushTrackerTest, UpdatesAreGroupedByPrimary) {
  EXPECT_EQ(tracker_.Push(77), 1u);
  const auto pushes = PollPushes();
  ASSERT_EQ(pushes.size(), 2u);
  EXPECT_EQ(pushes[0].server, 0u);
  EXPECT_EQ(pushes[0].sequence, 1u);
  EXPECT_EQ(pushes[0].job_examples, 77u);
  ASSERT_EQ(pushes[0].updates.size(), 2u);
  EXPECT_EQ(pushes[0].updates[1].shard, 2u);
  EXPECT_EQ(pushes[0].updates[1].bucket_epoch, 12u);
  EXPECT_EQ(pushes[1].server, 1u);
  EXPECT_NE(pushes[0].request, pushes[1].request);
  EXPECT_TRUE(PollPushes().empty());
}

TEST_F(PushTrackerTest, MessagesStayBelowTheLimit) {
  PushTracker tracker = MakeTracker(4);
  tracker.OnMap(map_);
  tracker.OnConnected(0);
  tracker.OnConnected(1);
  tracker.Push(0);
  EXPECT_EQ(tracker.Poll(now_).size(), 3u);
  tracker.Fetch(0);
  EXPECT_EQ(tracker.Poll(now_).size(), 3u);
}

TEST_F(PushTrackerTest, APushIsRetiredWhenAllItsShardsAreAcknowledged) {
  tracker_.Push(0);
  const auto pushes = PollPushes();
  ASSERT_TRUE(Answer(pushes[0], UpdateOutcome::kApplied).ok());
  EXPECT_TRUE(tracker_.TakeRetired().empty());
  ASSERT_TRUE(Answer(pushes[1], UpdateOutcome::kDuplicate).ok());
  const auto retired = tracker_.TakeRetired();
  ASSERT_EQ(retired.size(), 1u);
  EXPECT_EQ(retired[0].sequence, 1u);
  EXPECT_FALSE(retired[0].refused);
  EXPECT_TRUE(tracker_.Idle());
}

TEST_F(PushTrackerTest, PushesAreRetiredInOrder) {
  tracker_.Push(0);
  const auto first = PollPushes();
  tracker_.Push(0);
  const auto second = PollPushes();
  EXPECT_FALSE(tracker_.CanPush());
  for (const PushMessage& push : second) {
    ASSERT_TRUE(Answer(push, UpdateOutcome::kApplied).ok());
  }
  EXPECT_TRUE(tracker_.TakeRetired().empty());
  for (const PushMessage& push : first) {
    ASSERT_TRUE(Answer(push, UpdateOutcome::kApplied).ok());
  }
  EXPECT_EQ(tracker_.TakeRetired().size(), 2u);
}

TEST_F(PushTrackerTest, ABrokenStreamSendsAgainWhatIsNotAcknowledged) {
  tracker_.Push(0);
  const auto before = PollPushes();
  ASSERT_TRUE(Answer(before[0], UpdateOutcome::kApplied).ok());
  tracker_.OnDisconnected(0);
  tracker_.OnDisconnected(1);
  EXPECT_TRUE(PollPushes().empty());
  tracker_.OnConnected(0);
  EXPECT_TRUE(PollPushes().empty());
  tracker_.OnConnected(1);
  const auto after = PollPushes();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].updates[0].shard, 1u);
  EXPECT_EQ(after[0].sequence, 1u);
  // The answer to the first sending says nothing about the second.
  ASSERT_TRUE(Answer(before[1], UpdateOutcome::kApplied).ok());
  EXPECT_FALSE(tracker_.Idle());
  ASSERT_TRUE(Answer(after[0], UpdateOutcome::kDuplicate).ok());
  EXPECT_EQ(tracker_.TakeRetired().size(), 1u);
}

TEST_F(PushTrackerTest, AServerThatLostAcknowledgedUpdatesGetsTheOldestHeldAfterLoss) {
  Complete();
  Complete();
  tracker_.Push(0);
  const auto third = PollPushes();
  tracker_.Push(0);
  const auto fourth = PollPushes();
  // Server 1 came back with nothing. It is asked once more, then believed.
  ASSERT_TRUE(Answer(third[1], UpdateOutcome::kUnexpectedSequence, 1).ok());
  auto again = PollPushes();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_FALSE(again[0].updates[0].after_loss);
  ASSERT_TRUE(Answer(again[0], UpdateOutcome::kUnexpectedSequence, 1).ok());
  again = PollPushes();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].sequence, 3u);
  EXPECT_TRUE(again[0].updates[0].after_loss);
  EXPECT_EQ(tracker_.lost_updates(), 2u);
  ASSERT_TRUE(Answer(fourth[1], UpdateOutcome::kUnexpectedSequence, 1).ok());
  again = PollPushes();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].sequence, 4u);
  EXPECT_FALSE(again[0].updates[0].after_loss);
  EXPECT_EQ(tracker_.lost_updates(), 2u);
}

TEST_F(PushTrackerTest, WhatTheServerLostButTheWorkerHoldsIsSentAgain) {
  tracker_.Push(0);
  const auto first = PollPushes();
  tracker_.Push(0);
  const auto second = PollPushes();
  // Shard 1 of the first push is acknowledged, its other shards are not; then server 1 loses it.
  ASSERT_TRUE(Answer(first[1], UpdateOutcome::kApplied).ok());
  ASSERT_TRUE(Answer(second[1], UpdateOutcome::kUnexpectedSequence, 1).ok());
  const auto again = PollPushes();
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].sequence, 1u);
  EXPECT_EQ(again[1].sequence, 2u);
  EXPECT_FALSE(again[0].updates[0].after_loss);
  EXPECT_EQ(tracker_.lost_updates(), 0u);
}

TEST_F(PushTrackerTest, ASequenceThatWasNeverSentIsAnError) {
  tracker_.Push(0);
  const auto pushes = PollPushes();
  EXPECT_EQ(Answer(pushes[0], UpdateOutcome::kUnexpectedSequence, 2).code(),
            absl::StatusCode::kInternal);
}

TEST_F(PushTrackerTest, NotPrimaryWaitsForANewerMapOrAWhile) {
  tracker_.Push(0);
  const auto pushes = PollPushes();
  ASSERT_TRUE(Answer(pushes[1], UpdateOutcome::kNotPrimary).ok());
  EXPECT_TRUE(PollPushes().empty());
  ASSERT_TRUE(tracker_.NextPoll().has_value());
  EXPECT_EQ(*tracker_.NextPoll(), now_ + milliseconds(500));
  map_.version = 2;
  map_.buckets[layout_.shards()[1].bucket].primary = 0;
  tracker_.OnMap(map_);
  const auto again = PollPushes();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].server, 0u);
  ASSERT_TRUE(Answer(again[0], UpdateOutcome::kNotPrimary).ok());
  now_ += milliseconds(500);
  EXPECT_EQ(PollPushes().size(), 1u);
}

TEST_F(PushTrackerTest, NotReadyIsTriedAgainAfterABackoff) {
  tracker_.Push(0);
  auto pushes = PollPushes();
  std::optional<Clock::Duration> last;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(Answer(pushes.back(), UpdateOutcome::kNotReady).ok());
    EXPECT_TRUE(PollPushes().empty());
    const Clock::Duration wait = *tracker_.NextPoll() - now_;
    EXPECT_LE(wait, milliseconds(1000));
    EXPECT_TRUE(!last.has_value() || wait >= *last);
    last = wait;
    now_ += wait;
    pushes = PollPushes();
    ASSERT_EQ(pushes.size(), 1u);
  }
}

TEST_F(PushTrackerTest, ALaterUpdateWaitsForTheEarlierOneOfItsShard) {
  tracker_.Push(0);
  const auto first = PollPushes();
  ASSERT_TRUE(Answer(first[1], UpdateOutcome::kNotReady).ok());
  tracker_.Push(0);
  const auto second = PollPushes();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].server, 0u);
  now_ += milliseconds(50);
  const auto later = PollPushes();
  ASSERT_EQ(later.size(), 2u);
  EXPECT_EQ(later[0].sequence, 1u);
  EXPECT_EQ(later[1].sequence, 2u);
}

TEST_F(PushTrackerTest, AServersRefusalEndsThePushAndLeavesAGapThatIsNamed) {
  tracker_.Push(0);
  const auto first = PollPushes();
  ASSERT_TRUE(Answer(first[0], UpdateOutcome::kNotFinite).ok());
  ASSERT_TRUE(Answer(first[1], UpdateOutcome::kApplied).ok());
  const auto retired = tracker_.TakeRetired();
  ASSERT_EQ(retired.size(), 1u);
  EXPECT_TRUE(retired[0].refused);
  tracker_.Push(0);
  const auto second = PollPushes();
  ASSERT_TRUE(Answer(second[0], UpdateOutcome::kUnexpectedSequence, 1).ok());
  auto again = PollPushes();
  ASSERT_TRUE(Answer(again[0], UpdateOutcome::kUnexpectedSequence, 1).ok());
  again = PollPushes();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].updates[0].after_loss);
}

TEST_F(PushTrackerTest, AnotherProcessInTheSlotAndMalformedUpdatesEndTheWorker) {
  tracker_.Push(0);
  const auto pushes = PollPushes();
  EXPECT_EQ(Answer(pushes[0], UpdateOutcome::kStaleIncarnation).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Answer(pushes[1], UpdateOutcome::kMalformed).code(), absl::StatusCode::kInternal);
}

TEST_F(PushTrackerTest, AFetchIsCompleteWhenAllShardsHaveCome) {
  const FetchId fetch = tracker_.Fetch(0);
  const auto fetches = PollFetches();
  ASSERT_EQ(fetches.size(), 2u);
  FetchReply reply = {.request = fetches[0].request};
  reply.shards = {
      {.shard = 0, .outcome = FetchOutcome::kFound, .version = 5, .included_sequence = 3},
      {.shard = 2, .outcome = FetchOutcome::kNotReady}};
  auto progress = tracker_.OnFetchReply(reply, now_);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->fetch, fetch);
  EXPECT_EQ(progress->fresh, std::vector<std::size_t>{0});
  EXPECT_FALSE(progress->complete);
  EXPECT_TRUE(tracker_.Includes(fetch, 0, 3));
  EXPECT_FALSE(tracker_.Includes(fetch, 0, 4));
  EXPECT_FALSE(tracker_.Received(fetch, 2));

  now_ += milliseconds(50);
  const auto again = PollFetches();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].shards, std::vector<ShardId>{2});
  reply = {.request = again[0].request, .shards = {{.shard = 2, .version = 6}}};
  ASSERT_TRUE(tracker_.OnFetchReply(reply, now_).ok());
  reply = {.request = fetches[1].request, .shards = {{.shard = 1, .version = 7}}};
  progress = tracker_.OnFetchReply(reply, now_);
  ASSERT_TRUE(progress.ok());
  EXPECT_TRUE(progress->complete);

  tracker_.Applied(fetch);
  tracker_.Push(0);
  for (const PushMessage& push : PollPushes()) {
    for (const ShardUpdate& update : push.updates) {
      EXPECT_EQ(update.fetched_version, update.shard == 0 ? 5u : update.shard == 1 ? 7u : 6u);
    }
  }
}

TEST_F(PushTrackerTest, AMissingSnapshotDropsTheFetch) {
  const FetchId fetch = tracker_.Fetch(9);
  const auto fetches = PollFetches();
  EXPECT_EQ(fetches[0].snapshot, 9u);
  FetchReply reply = {.request = fetches[0].request};
  reply.shards = {{.shard = 0, .outcome = FetchOutcome::kNoSuchSnapshot}};
  auto progress = tracker_.OnFetchReply(reply, now_);
  ASSERT_TRUE(progress.ok());
  EXPECT_TRUE(progress->missing);
  EXPECT_EQ(progress->fetch, fetch);
  reply = {.request = fetches[1].request, .shards = {{.shard = 1}}};
  progress = tracker_.OnFetchReply(reply, now_);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->fetch, 0u);
}

TEST_F(PushTrackerTest, RepliesForShardsOfAnotherModelAreErrors) {
  EXPECT_EQ(tracker_.OnPushReply({.request = 1, .acks = {{.shard = 99}}}, now_).code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(tracker_.OnFetchReply({.request = 1, .shards = {{.shard = 99}}}, now_).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace adamant::worker
