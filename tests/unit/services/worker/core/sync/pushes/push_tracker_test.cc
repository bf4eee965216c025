// Pushes between a worker and its servers while nothing acknowledged is lost; retention_test.cc has
// the rest.

#include "services/worker/core/sync/pushes/push_tracker.h"

#include <optional>

#include "tests/unit/services/worker/core/sync/tracker_fixture.h"

namespace adamant::worker {
namespace {

using std::chrono::milliseconds;

class PushTrackerTest : public TrackerTest {};

TEST_F(PushTrackerTest, UpdatesAreGroupedByPrimary) {
  EXPECT_EQ(pushes_.Push({.job_examples = 77}), 1u);
  const auto pushes = PollPushes();
  ASSERT_EQ(pushes.size(), 2u);
  EXPECT_EQ(pushes[0].server, 0u);
  EXPECT_EQ(pushes[0].sequence(), 1u);
  EXPECT_EQ(pushes[0].terms.job_examples, 77u);
  ASSERT_EQ(pushes[0].updates.size(), 2u);
  EXPECT_EQ(pushes[0].updates[1].shard, 2u);
  EXPECT_EQ(pushes[0].updates[1].configuration_version, 12u);
  EXPECT_EQ(pushes[1].server, 1u);
  EXPECT_NE(pushes[0].request, pushes[1].request);
  EXPECT_TRUE(PollPushes().empty());
}

TEST_F(PushTrackerTest, MessagesStayBelowTheLimit) {
  PushTrackerOptions options = Options(false);
  options.max_message_bytes = 4;
  PushTracker tracker(options, layout_, routes_);
  tracker.Push({});
  EXPECT_EQ(tracker.Poll(now_).size(), 3u);
}

TEST_F(PushTrackerTest, APushIsRetiredWhenAllItsShardsAreAcknowledged) {
  pushes_.Push({});
  const auto pushes = PollPushes();
  ASSERT_TRUE(Answer(pushes[0], PushOutcome::kApplied).ok());
  EXPECT_TRUE(pushes_.TakeRetired().empty());
  ASSERT_TRUE(Answer(pushes[1], PushOutcome::kDuplicate).ok());
  EXPECT_FALSE(pushes_.Idle());
  const auto retired = pushes_.TakeRetired();
  ASSERT_EQ(retired.size(), 1u);
  EXPECT_EQ(retired[0].sequence, 1u);
  EXPECT_FALSE(retired[0].refused);
  EXPECT_TRUE(pushes_.Idle());
}

TEST_F(PushTrackerTest, PushesAreRetiredInOrderAndALaterAnswerAlsoAnswersTheEarlierOnes) {
  pushes_.Push({});
  const auto first = PollPushes();
  pushes_.Push({});
  const auto second = PollPushes();
  EXPECT_FALSE(pushes_.CanPush());
  ASSERT_TRUE(Answer(first[0], PushOutcome::kApplied).ok());
  EXPECT_TRUE(pushes_.TakeRetired().empty());
  for (const PushMessage& push : second) {
    ASSERT_TRUE(Answer(push, PushOutcome::kApplied).ok());
  }
  EXPECT_EQ(pushes_.TakeRetired().size(), 2u);
  ASSERT_TRUE(Answer(first[1], PushOutcome::kNotReady).ok());
  EXPECT_TRUE(pushes_.Idle());
}

TEST_F(PushTrackerTest, ABrokenStreamSendsAgainWhatIsNotAcknowledged) {
  pushes_.Push({});
  const auto before = PollPushes();
  ASSERT_TRUE(Answer(before[0], PushOutcome::kApplied).ok());
  Disconnect(0);
  Disconnect(1);
  EXPECT_TRUE(PollPushes().empty());
  routes_.OnConnected(0);
  EXPECT_TRUE(PollPushes().empty());
  routes_.OnConnected(1);
  const auto after = PollPushes();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].updates[0].shard, 1u);
  EXPECT_EQ(after[0].sequence(), 1u);
  // The answer to the first sending says nothing about the second.
  ASSERT_TRUE(Answer(before[1], PushOutcome::kApplied).ok());
  EXPECT_TRUE(pushes_.TakeRetired().empty());
  ASSERT_TRUE(Answer(after[0], PushOutcome::kDuplicate).ok());
  EXPECT_EQ(pushes_.TakeRetired().size(), 1u);
}

TEST_F(PushTrackerTest, WhatASilentServerWasSentGoesToTheNewPrimaryAtOnce) {
  pushes_.Push({});
  const auto before = PollPushes();
  Move(1, 0);
  const auto after = PollPushes();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].server, 0u);
  EXPECT_EQ(after[0].updates[0].shard, 1u);
  ASSERT_TRUE(Answer(before[0], PushOutcome::kApplied).ok());
  ASSERT_TRUE(Answer(after[0], PushOutcome::kApplied).ok());
  // It wakes up, and knows less.
  ASSERT_TRUE(Answer(before[1], PushOutcome::kNotPrimary).ok());
  EXPECT_EQ(pushes_.TakeRetired().size(), 1u);
}

TEST_F(PushTrackerTest, AChangeOfSecondariesSendsNothingAgain) {
  pushes_.Push({});
  const auto pushes = PollPushes();
  ++PlacementOf(1).version;
  SendPlacement();
  EXPECT_TRUE(PollPushes().empty());
  for (const PushMessage& push : pushes) {
    ASSERT_TRUE(Answer(push, PushOutcome::kApplied).ok());
  }
  EXPECT_EQ(pushes_.TakeRetired().size(), 1u);
}

TEST_F(PushTrackerTest, ASequenceThatWasNeverSentIsAnError) {
  pushes_.Push({});
  const auto pushes = PollPushes();
  EXPECT_EQ(Answer(pushes[0], PushOutcome::kUnexpectedSequence, 2).code(),
            absl::StatusCode::kInternal);
  pushes_.Push({});
  const auto second = PollPushes();
  EXPECT_EQ(Answer(second[1], PushOutcome::kUnexpectedSequence, 0).code(),
            absl::StatusCode::kInternal);
}

TEST_F(PushTrackerTest, NotPrimaryWaitsForTheBucketsNextRecordOrAWhile) {
  pushes_.Push({});
  const auto pushes = PollPushes();
  ASSERT_TRUE(Answer(pushes[1], PushOutcome::kNotPrimary).ok());
  EXPECT_TRUE(PollPushes().empty());
  ASSERT_TRUE(pushes_.NextPoll().has_value());
  EXPECT_EQ(*pushes_.NextPoll(), now_ + milliseconds(500));
  SendPlacement();
  EXPECT_TRUE(PollPushes().empty()) << "the view says nothing new of this bucket";
  Move(1, 0);
  const auto again = PollPushes();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].server, 0u);
  ASSERT_TRUE(Answer(again[0], PushOutcome::kNotPrimary).ok());
  now_ += milliseconds(500);
  EXPECT_EQ(PollPushes().size(), 1u);
}

TEST_F(PushTrackerTest, AServerThatHasNotHeardOfItsNewRoleIsSoonAskedAgain) {
  pushes_.Push({});
  PollPushes();
  Move(1, 0);
  const auto moved = PollPushes();
  const PushReply reply = {
      .request = moved[0].request,
      .acks = {{.shard = 1, .outcome = PushOutcome::kNotPrimary, .configuration_version = 11}}};
  ASSERT_TRUE(pushes_.OnReply(reply, now_).ok());
  now_ += milliseconds(50);
  EXPECT_EQ(PollPushes().size(), 1u);
}

TEST_F(PushTrackerTest, NotReadyIsTriedAgainAfterABackoffThatANewRecordEnds) {
  pushes_.Push({});
  auto pushes = PollPushes();
  std::optional<Clock::Duration> last;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(Answer(pushes.back(), PushOutcome::kNotReady).ok());
    EXPECT_TRUE(PollPushes().empty());
    const Clock::Duration wait = *pushes_.NextPoll() - now_;
    EXPECT_LE(wait, milliseconds(1000));
    EXPECT_TRUE(!last.has_value() || wait >= *last);
    last = wait;
    now_ += wait;
    pushes = PollPushes();
    ASSERT_EQ(pushes.size(), 1u);
  }
  ASSERT_TRUE(Answer(pushes.back(), PushOutcome::kNotReady).ok());
  ++PlacementOf(1).version;
  SendPlacement();
  pushes = PollPushes();
  ASSERT_EQ(pushes.size(), 1u);
  ASSERT_TRUE(Answer(pushes.back(), PushOutcome::kNotReady).ok());
  EXPECT_TRUE(PollPushes().empty());
  EXPECT_EQ(*pushes_.NextPoll(), now_ + milliseconds(50));
}

TEST_F(PushTrackerTest, ALaterUpdateWaitsForTheEarlierOneOfItsShard) {
  pushes_.Push({});
  const auto first = PollPushes();
  ASSERT_TRUE(Answer(first[1], PushOutcome::kNotReady).ok());
  pushes_.Push({});
  const auto second = PollPushes();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].server, 0u);
  now_ += milliseconds(50);
  EXPECT_EQ(SequencesOf(PollPushes()), (std::vector<Sequence>{1, 2}));
}

TEST_F(PushTrackerTest, AServersRefusalEndsThePushAndLeavesAGapThatIsNamedAndNoLoss) {
  pushes_.Push({});
  const auto first = PollPushes();
  ASSERT_TRUE(Answer(first[0], PushOutcome::kNotFinite).ok());
  ASSERT_TRUE(Answer(first[1], PushOutcome::kApplied).ok());
  const auto retired = pushes_.TakeRetired();
  ASSERT_EQ(retired.size(), 1u);
  EXPECT_TRUE(retired[0].refused);
  pushes_.Push({});
  const auto second = PollPushes();
  EXPECT_FALSE(second[0].updates[0].after_loss) << "only the server knows what it has";
  ASSERT_TRUE(Answer(second[0], PushOutcome::kUnexpectedSequence, 1).ok());
  const auto again = PollPushes();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].updates[0].after_loss);
  EXPECT_EQ(pushes_.lost_updates(), 0u);
}

TEST_F(PushTrackerTest, AnotherProcessInTheSlotAndMalformedUpdatesEndTheWorker) {
  pushes_.Push({});
  const auto pushes = PollPushes();
  EXPECT_EQ(Answer(pushes[0], PushOutcome::kStaleIncarnation).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Answer(pushes[1], PushOutcome::kMalformed).code(), absl::StatusCode::kInternal);
}

TEST_F(PushTrackerTest, RepliesForShardsOfAnotherModelAreErrors) {
  EXPECT_EQ(pushes_.OnReply(PushReply{.request = 1, .acks = {{.shard = 99}}}, now_).code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(pushes_.OnReply(FlushReply{.request = 1, .persisted = {{.shard = 99}}}).code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace adamant::worker
