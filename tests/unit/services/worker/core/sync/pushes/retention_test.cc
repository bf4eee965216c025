// PushTracker when servers lose what they had acknowledged: what is held until it is on disk is
// sent again, the rest is counted.

#include "tests/unit/services/worker/core/sync/tracker_fixture.h"

namespace adamant::worker {
namespace {

using std::chrono::milliseconds;

/// Nothing is retained.
class LossTest : public TrackerTest {};

/// Acknowledged pushes are retained.
class RetentionTest : public TrackerTest {
 protected:
  RetentionTest() : TrackerTest(true) {}

  /// All members of shard 1's bucket are lost; server 0 brings it back from disk.
  void Restore() {
    ++PlacementOf(1).generation;
    Move(1, 0);
  }
};

TEST_F(LossTest, WhatIsNoLongerHeldIsCountedAndSkipped) {
  Complete();
  Complete();
  pushes_.Push({});
  const auto third = PollPushes();
  pushes_.Push({});
  const auto fourth = PollPushes();
  ASSERT_TRUE(Answer(third[1], PushOutcome::kUnexpectedSequence, 1).ok());
  const auto again = PollPushes();
  ASSERT_EQ(SequencesOf(again), (std::vector<Sequence>{3, 4}));
  EXPECT_TRUE(again[0].updates[0].after_loss);
  EXPECT_FALSE(again[1].updates[0].after_loss);
  EXPECT_EQ(pushes_.lost_updates(), 2u);
  // The answer to the first sending of the fourth push is void.
  ASSERT_TRUE(Answer(fourth[1], PushOutcome::kUnexpectedSequence, 1).ok());
  EXPECT_TRUE(PollPushes().empty());
  EXPECT_EQ(pushes_.lost_updates(), 2u);
  EXPECT_EQ(pushes_.resent_updates(), 0u);
}

TEST_F(LossTest, EachLossIsCountedOnceHoweverOftenAServerIsRolledBackPastIt) {
  for (int i = 0; i < 4; ++i) {
    Complete();
  }
  const auto lose = [this](Sequence expected) {
    pushes_.Push({});
    for (const PushMessage& push : PollPushes()) {
      const bool moved = push.updates[0].shard == 1;
      ASSERT_TRUE(
          Answer(push, moved ? PushOutcome::kUnexpectedSequence : PushOutcome::kApplied, expected)
              .ok());
    }
    const auto again = PollPushes();
    ASSERT_EQ(again.size(), 1u);
    ASSERT_TRUE(again[0].updates[0].after_loss);
    ASSERT_TRUE(Answer(again[0], PushOutcome::kApplied).ok());
    pushes_.TakeRetired();
    pushes_.Release();
  };
  lose(3);  // 3 and 4
  EXPECT_EQ(pushes_.lost_updates(), 2u);
  lose(2);  // 2 and 5, and again 3 and 4
  EXPECT_EQ(pushes_.lost_updates(), 4u);
  lose(6);  // 6
  EXPECT_EQ(pushes_.lost_updates(), 5u);
  lose(1);  // 1 and 7, and all the others again
  EXPECT_EQ(pushes_.lost_updates(), 7u);
}

TEST_F(LossTest, WhatTheServerLostButTheWorkerHoldsIsSentAgain) {
  pushes_.Push({});
  const auto first = PollPushes();
  pushes_.Push({});
  const auto second = PollPushes();
  // Shard 1 of the first push is acknowledged, its other shards are not; then server 1 loses it.
  ASSERT_TRUE(Answer(first[1], PushOutcome::kApplied).ok());
  ASSERT_TRUE(Answer(second[1], PushOutcome::kUnexpectedSequence, 1).ok());
  const auto again = PollPushes();
  EXPECT_EQ(SequencesOf(again), (std::vector<Sequence>{1, 2}));
  EXPECT_FALSE(again[0].updates[0].after_loss);
  EXPECT_EQ(pushes_.lost_updates(), 0u);
  ASSERT_TRUE(Answer(again[0], PushOutcome::kApplied).ok());
  ASSERT_TRUE(Answer(again[1], PushOutcome::kApplied).ok());
  EXPECT_EQ(pushes_.resent_updates(), 1u);
}

TEST_F(LossTest, AfterABrokenStreamTheServerSaysAnewWhatMayBeSkipped) {
  Complete();
  Complete();
  pushes_.Push({});
  auto pushes = PollPushes();
  ASSERT_TRUE(Answer(pushes[1], PushOutcome::kUnexpectedSequence, 2).ok());
  pushes = PollPushes();
  ASSERT_TRUE(pushes[0].updates[0].after_loss);
  Disconnect(1);
  routes_.OnConnected(1);
  pushes = PollPushes();
  EXPECT_FALSE(pushes[0].updates[0].after_loss) << "it may lack more by now";
  ASSERT_TRUE(Answer(pushes[0], PushOutcome::kUnexpectedSequence, 1).ok());
  EXPECT_EQ(pushes_.lost_updates(), 2u);
  Disconnect(1);
  routes_.OnConnected(1);
  pushes = PollPushes();
  EXPECT_FALSE(pushes[0].updates[0].after_loss);
  ASSERT_TRUE(Answer(pushes[0], PushOutcome::kUnexpectedSequence, 1).ok());
  EXPECT_TRUE(PollPushes()[0].updates[0].after_loss);
  EXPECT_EQ(pushes_.lost_updates(), 2u);
}

TEST_F(RetentionTest, APushIsReleasedWhenAllItsShardsAreOnDisk) {
  Complete();
  Complete();
  EXPECT_EQ(pushes_.Release(), 0u);
  EXPECT_TRUE(pushes_.Idle());
  FlushReply reply = {.request = 100, .persisted = {{0, 2}, {1, 1}}};
  ASSERT_TRUE(pushes_.OnReply(reply).ok());
  EXPECT_EQ(pushes_.Release(), 0u);
  reply.persisted = {{.shard = 2, .sequence = 2}};
  ASSERT_TRUE(pushes_.OnReply(reply).ok());
  EXPECT_EQ(pushes_.Release(), 1u);
  persisted_ = 2;
  Complete();
  EXPECT_EQ(pushes_.Release(), 2u);
}

TEST_F(RetentionTest, ARollbackBelowAcknowledgementsSendsTheShardsUpdatesAgainInOrder) {
  for (int i = 0; i < 10; ++i) {
    Complete();
  }
  persisted_ = 3;
  Complete();
  EXPECT_EQ(pushes_.Release(), 3u);
  pushes_.Push({});
  auto pushes = PollPushes();
  ASSERT_EQ(pushes.size(), 2u);
  ASSERT_TRUE(Answer(pushes[1], PushOutcome::kUnexpectedSequence, 4).ok());
  Sequence next = 4;
  while (next <= 12) {
    pushes = PollPushes();
    ASSERT_FALSE(pushes.empty());
    for (const PushMessage& push : pushes) {
      EXPECT_EQ(push.sequence(), next++);
      ASSERT_EQ(push.updates.size(), 1u);
      EXPECT_EQ(push.updates[0].shard, 1u);
      EXPECT_FALSE(push.updates[0].after_loss);
      ASSERT_TRUE(Answer(push, PushOutcome::kApplied).ok());
    }
  }
  EXPECT_EQ(pushes_.resent_updates(), 8u);
  EXPECT_EQ(pushes_.lost_updates(), 0u);
}

TEST_F(RetentionTest, AWorkerWithNothingToPushResendsWhenABucketCameBackFromDisk) {
  Complete();
  Complete();
  Complete();
  Restore();
  auto pushes = PollPushes();
  ASSERT_EQ(SequencesOf(pushes), std::vector<Sequence>{3}) << "asks what the server has";
  EXPECT_FALSE(pushes_.Idle());
  ASSERT_TRUE(Answer(pushes[0], PushOutcome::kUnexpectedSequence, 2).ok());
  pushes = PollPushes();
  ASSERT_EQ(SequencesOf(pushes), (std::vector<Sequence>{2, 3}));
  for (const PushMessage& push : pushes) {
    ASSERT_TRUE(Answer(push, PushOutcome::kApplied).ok());
  }
  EXPECT_TRUE(pushes_.Idle());
  EXPECT_EQ(pushes_.resent_updates(), 2u);
  // Nothing was lost: one question is all.
  Restore();
  pushes = PollPushes();
  ASSERT_TRUE(Answer(pushes[0], PushOutcome::kDuplicate).ok());
  EXPECT_TRUE(pushes_.Idle());
  EXPECT_EQ(pushes_.resent_updates(), 2u);
}

TEST_F(RetentionTest, AFailoverWithoutLossSendsNothingAgain) {
  Complete();
  Move(1, 0);
  EXPECT_TRUE(PollPushes().empty());
  EXPECT_TRUE(pushes_.Idle());
}

TEST_F(RetentionTest, AValueOfAHigherEpochThatLacksAcknowledgedUpdatesBringsThemBack) {
  Complete();
  Complete();
  FetchedShard value = {.shard = 1, .included_sequence = 1, .configuration_version = 11};
  pushes_.OnValue(routes_.NextRequest(), value);
  EXPECT_TRUE(pushes_.Idle()) << "of the same epoch it is only older";
  value.configuration_version = 12;
  pushes_.OnValue(routes_.NextRequest(), value);
  EXPECT_EQ(SequencesOf(PollPushes()), std::vector<Sequence>{2});
}

TEST_F(RetentionTest, AnAnswerOfALowerEpochRollsNothingBack) {
  Complete();
  Complete();
  pushes_.Push({});
  const auto pushes = PollPushes();
  ++PlacementOf(1).version;
  SendPlacement();
  const PushReply reply = {.request = pushes[1].request,
                           .acks = {{.shard = 1,
                                     .outcome = PushOutcome::kUnexpectedSequence,
                                     .expected = 1,
                                     .configuration_version = 11}}};
  ASSERT_TRUE(pushes_.OnReply(reply, now_).ok());
  now_ += milliseconds(50);
  EXPECT_EQ(SequencesOf(PollPushes()), std::vector<Sequence>{3});
}

TEST_F(RetentionTest, WhatWasOnADiskThatIsGoneIsLostAndWhatAnOldServerSaysOfItIsVoid) {
  persisted_ = 2;
  Complete();
  Complete();
  Complete();
  EXPECT_EQ(pushes_.Release(), 2u);
  const std::uint64_t asked = routes_.NextRequest();
  Restore();
  const auto question = PollPushes();
  persisted_ = 0;
  ASSERT_TRUE(Answer(question[0], PushOutcome::kUnexpectedSequence, 2).ok());
  const auto again = PollPushes();
  ASSERT_EQ(SequencesOf(again), std::vector<Sequence>{3});
  EXPECT_TRUE(again[0].updates[0].after_loss);
  EXPECT_EQ(pushes_.lost_updates(), 1u);
  ASSERT_TRUE(Answer(again[0], PushOutcome::kApplied).ok());
  ASSERT_TRUE(
      pushes_.OnReply(FlushReply{.request = asked, .persisted = {{0, 3}, {1, 3}, {2, 3}}}).ok());
  EXPECT_EQ(pushes_.Release(), 2u) << "shard 1 is not on the new disk";
}

TEST_F(RetentionTest, AnAcknowledgementOfALostGenerationIsVoid) {
  Complete();
  pushes_.Push({});
  const auto before = PollPushes();
  Restore();
  persisted_ = 2;
  for (const PushMessage& push : before) {
    ASSERT_TRUE(Answer(push, PushOutcome::kApplied).ok());
  }
  EXPECT_FALSE(pushes_.Idle());
  EXPECT_EQ(pushes_.Release(), 0u);
  const auto again = PollPushes();
  ASSERT_EQ(SequencesOf(again), (std::vector<Sequence>{1, 2})) << "the first asks what it has";
}

TEST_F(RetentionTest, WhatARollbackTookFromTheDiskIsRetainedUntilItIsThereAgain) {
  Complete();
  Complete();
  FlushReply flushed = {.request = 100, .persisted = {{0, 1}, {1, 2}, {2, 1}}};
  ASSERT_TRUE(pushes_.OnReply(flushed).ok());
  EXPECT_EQ(pushes_.Release(), 1u);
  Restore();  // from an older disk
  const auto question = PollPushes();
  ASSERT_TRUE(Answer(question[0], PushOutcome::kApplied).ok());
  flushed = {.request = 100, .persisted = {{0, 2}, {2, 2}}};
  ASSERT_TRUE(pushes_.OnReply(flushed).ok());
  EXPECT_EQ(pushes_.Release(), 1u);
  flushed.persisted = {{.shard = 1, .sequence = 2}};
  ASSERT_TRUE(pushes_.OnReply(flushed).ok());
  EXPECT_EQ(pushes_.Release(), 2u);
}

TEST_F(RetentionTest, ServersAreAskedToFlushUntilTheWatermarkMoves) {
  Complete();
  const auto polled = [this] {
    std::vector<FlushMessage> messages;
    for (const PushTracker::Message& message : pushes_.Poll(now_)) {
      messages.push_back(std::get<FlushMessage>(message));
    }
    return messages;
  };
  EXPECT_TRUE(polled().empty());
  pushes_.AskForFlush(true);
  auto messages = polled();
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].shards, (std::vector<ShardId>{0, 2}));
  EXPECT_EQ(messages[1].server, 1u);
  EXPECT_TRUE(polled().empty());
  Clock::Duration last{};
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(pushes_.NextPoll().has_value());
    const Clock::Duration wait = *pushes_.NextPoll() - now_;
    EXPECT_GE(wait, last);
    EXPECT_LE(wait, milliseconds(400));
    last = wait;
    now_ += wait;
    messages = polled();
    EXPECT_EQ(messages.size(), 2u);
  }
  ASSERT_TRUE(
      pushes_.OnReply(FlushReply{.request = messages[0].request, .persisted = {{0, 1}, {2, 1}}})
          .ok());
  now_ += last;
  messages = polled();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].shards, std::vector<ShardId>{1});
  pushes_.AskForFlush(false);
  now_ += milliseconds(1000);
  EXPECT_TRUE(polled().empty());
}

TEST(SequenceSetTest, RangesMergeAndCountWhatIsNew) {
  SequenceSet set;
  EXPECT_FALSE(set.Contains(1));
  EXPECT_EQ(set.Insert(5, 8), 3u);
  EXPECT_EQ(set.Insert(10, 12), 2u);
  EXPECT_EQ(set.Insert(6, 11), 2u);
  EXPECT_EQ(set.Insert(1, 5), 4u);
  EXPECT_EQ(set.Insert(1, 12), 0u);
  EXPECT_EQ(set.Insert(20, 21), 1u);
  EXPECT_EQ(set.FirstOutside(1), 12u);
  EXPECT_EQ(set.FirstOutside(12), 12u);
  EXPECT_TRUE(set.Contains(20));
  EXPECT_FALSE(set.Contains(19));
}

}  // namespace
}  // namespace adamant::worker
