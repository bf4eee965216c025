#include "services/worker/core/sync/fetches/fetch_tracker.h"

#include "tests/unit/services/worker/core/sync/tracker_fixture.h"

namespace adamant::worker {
namespace {

using std::chrono::milliseconds;

class FetchTrackerTest : public TrackerTest {
 protected:
  FetchedShard Found(ShardId shard, std::uint64_t version, Sequence included = 0) {
    return {.shard = shard,
            .version = version,
            .included_sequence = included,
            .configuration_version = PlacementOf(shard).version};
  }
};

TEST_F(FetchTrackerTest, AFetchIsCompleteWhenAllShardsHaveCome) {
  const FetchId fetch = fetches_.Fetch(0);
  const auto messages = PollFetches();
  ASSERT_EQ(messages.size(), 2u);
  auto progress = fetches_.OnReply(
      {.request = messages[0].request,
       .shards = {Found(0, 5, 3), {.shard = 2, .outcome = FetchOutcome::kNotReady}}},
      now_);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->fetch, fetch);
  EXPECT_EQ(progress->fresh, std::vector<std::size_t>{0});
  EXPECT_FALSE(progress->complete);
  EXPECT_TRUE(fetches_.Includes(fetch, 0, 3));
  EXPECT_FALSE(fetches_.Includes(fetch, 0, 4));
  EXPECT_FALSE(fetches_.Received(fetch, 2));

  now_ += milliseconds(50);
  const auto again = PollFetches();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].shards, std::vector<ShardId>{2});
  ASSERT_TRUE(fetches_.OnReply({.request = again[0].request, .shards = {Found(2, 6)}}, now_).ok());
  progress = fetches_.OnReply({.request = messages[1].request, .shards = {Found(1, 7)}}, now_);
  ASSERT_TRUE(progress.ok());
  EXPECT_TRUE(progress->complete);
  EXPECT_EQ(fetches_.Versions(fetch), (std::vector<std::uint64_t>{5, 7, 6}));
}

TEST_F(FetchTrackerTest, PushesNameTheVersionsThatTheyWereComputedFrom) {
  pushes_.SetFetchedVersions({5, 7, 6});
  pushes_.Push({});
  for (const PushMessage& push : PollPushes()) {
    for (const ShardUpdate& update : push.updates) {
      EXPECT_EQ(update.fetched_version, update.shard == 0 ? 5u : update.shard == 1 ? 7u : 6u);
    }
  }
}

TEST_F(FetchTrackerTest, MessagesStayBelowTheLimit) {
  FetchTracker tracker(4, layout_, routes_);
  tracker.Fetch(0);
  EXPECT_EQ(tracker.Poll(now_).size(), 3u);
}

TEST_F(FetchTrackerTest, AValueOfALowerConfigurationThanIsKnownIsAskedForAgain) {
  const FetchId fetch = fetches_.Fetch(0);
  const auto messages = PollFetches();
  FetchedShard old = Found(1, 7);
  ++PlacementOf(1).version;  // the primary stays
  SendPlacement();
  auto progress = fetches_.OnReply({.request = messages[1].request, .shards = {old}}, now_);
  ASSERT_TRUE(progress.ok());
  EXPECT_TRUE(progress->fresh.empty());
  EXPECT_FALSE(fetches_.Received(fetch, 1));
  now_ += milliseconds(50);
  const auto again = PollFetches();
  ASSERT_EQ(again.size(), 1u);
  progress = fetches_.OnReply({.request = again[0].request, .shards = {Found(1, 7)}}, now_);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->fresh.size(), 1u);
}

TEST_F(FetchTrackerTest, AnAcknowledgementOfAHigherConfigurationMakesOlderValuesUnwanted) {
  fetches_.Fetch(0);
  const auto messages = PollFetches();
  pushes_.Push({});
  for (const PushMessage& push : PollPushes()) {
    PushReply reply = {.request = push.request};
    for (const ShardUpdate& update : push.updates) {
      reply.acks.push_back(
          {.shard = update.shard, .outcome = PushOutcome::kApplied, .configuration_version = 20});
    }
    ASSERT_TRUE(pushes_.OnReply(reply, now_).ok());
  }
  const auto progress =
      fetches_.OnReply({.request = messages[1].request, .shards = {Found(1, 7)}}, now_);
  ASSERT_TRUE(progress.ok());
  EXPECT_TRUE(progress->fresh.empty());
}

TEST_F(FetchTrackerTest, WhatASilentServerWasAskedTheNewPrimaryIsAskedAtOnce) {
  fetches_.Fetch(0);
  const auto before = PollFetches();
  Move(1, 0);
  const auto after = PollFetches();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].server, 0u);
  const auto late = fetches_.OnReply({.request = before[1].request, .shards = {Found(1, 7)}}, now_);
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->fetch, 0u);
}

TEST_F(FetchTrackerTest, ABrokenStreamAsksAgain) {
  fetches_.Fetch(0);
  EXPECT_EQ(PollFetches().size(), 2u);
  Disconnect(1);
  EXPECT_TRUE(PollFetches().empty());
  routes_.OnConnected(1);
  EXPECT_EQ(PollFetches().size(), 1u);
}

TEST_F(FetchTrackerTest, ASnapshotThatIsNotThereYetIsAskedForAgainAndHoldsNothingElseUp) {
  const FetchId fetch = fetches_.Fetch(9);
  const auto messages = PollFetches();
  EXPECT_EQ(messages[0].snapshot, 9u);
  const auto progress = fetches_.OnReply({.request = messages[1].request,
                                          .shards = {{.shard = 1,
                                                      .outcome = FetchOutcome::kNoSuchSnapshot,
                                                      .configuration_version = 11}}},
                                         now_);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->fetch, fetch);
  EXPECT_TRUE(PollFetches().empty());
  EXPECT_EQ(fetches_.NextPoll(), now_ + milliseconds(50));
  pushes_.Push({});
  EXPECT_EQ(PollPushes().size(), 2u);
  now_ += milliseconds(50);
  const auto again = PollFetches();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].snapshot, 9u);
  fetches_.Drop(fetch);
  const auto dropped =
      fetches_.OnReply({.request = again[0].request, .shards = {Found(1, 7)}}, now_);
  ASSERT_TRUE(dropped.ok());
  EXPECT_EQ(dropped->fetch, 0u);
}

TEST_F(FetchTrackerTest, RepliesForShardsOfAnotherModelAreErrors) {
  EXPECT_EQ(fetches_.OnReply({.request = 1, .shards = {{.shard = 99}}}, now_).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace adamant::worker
