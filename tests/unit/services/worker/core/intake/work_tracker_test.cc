#include "services/worker/core/intake/work_tracker.h"

#include <gtest/gtest.h>

#include <vector>

namespace adamant::worker {
namespace {

LeaseResult Result(std::uint64_t id, std::uint32_t part = 0, DataEpoch epoch = 1) {
  return {.lease = {.batch = {.kind = WorkKind::kTrain,
                              .epoch = epoch,
                              .part = part,
                              .index = static_cast<std::uint32_t>(id)},
                    .id = protocol::FirstLeaseId(part, 0) - 1 + id},  // of server `part`
          .examples = 32};
}

class WorkTrackerTest : public testing::Test {
 protected:
  WorkTrackerTest() {
    SetOwners(1, {0, 1});
    tracker_.OnConnected(0);
    tracker_.OnConnected(1);
  }

  void SetOwners(std::uint64_t version, std::vector<ServerSlot> owners) {
    tracker_.OnPlacement({.version = version, .buckets = {}, .part_owners = std::move(owners)});
  }

  template <class T>
  std::vector<T> Poll() {
    std::vector<T> result;
    for (const WorkTracker::Message& message : tracker_.Poll(now_)) {
      result.push_back(std::get<T>(message));
    }
    return result;
  }

  WorkTracker tracker_;
  Clock::TimePoint now_{};
};

TEST_F(WorkTrackerTest, BatchesAreAcknowledgedWhenTheirPushIsRetired) {
  tracker_.Trained(1, {Result(1), Result(2, 1)});
  EXPECT_TRUE(Poll<AcknowledgeMessage>().empty());
  tracker_.Retired(1, false, now_);
  const auto messages = Poll<AcknowledgeMessage>();
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].server, 0u);
  EXPECT_EQ(messages[0].results[0].lease.id, 1u);
  EXPECT_EQ(messages[1].server, 1u);
  EXPECT_FALSE(tracker_.Idle());
  tracker_.OnAcknowledged({Result(1).lease, Result(2, 1).lease});
  EXPECT_TRUE(tracker_.Idle());
}

TEST_F(WorkTrackerTest, AResultGoesToWhoGrantedItsLeaseTooWhomTheMapDoesNotNameYet) {
  LeaseResult result = Result(1);  // of part 0
  result.lease.id = protocol::FirstLeaseId(1, 3);
  tracker_.Trained(1, {result, Result(2)});
  tracker_.Retired(1, false, now_);
  const auto messages = Poll<AcknowledgeMessage>();
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].server, 0u);
  EXPECT_EQ(messages[0].results.size(), 2u);
  EXPECT_EQ(messages[1].server, 1u);
  ASSERT_EQ(messages[1].results.size(), 1u);
  EXPECT_EQ(messages[1].results[0].lease, result.lease);
  tracker_.OnAcknowledged({result.lease, Result(2).lease});
  EXPECT_TRUE(tracker_.Idle()) << "one answer is enough";
}

TEST_F(WorkTrackerTest, AResultGoesToWhoGrantedItsLeaseThoughTheOwnerIsAway) {
  LeaseResult result = Result(1);
  result.lease.id = protocol::FirstLeaseId(1, 3);
  tracker_.OnDisconnected(0);
  tracker_.Evaluated(result, now_);
  const auto messages = Poll<AcknowledgeMessage>();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].server, 1u);
}

TEST_F(WorkTrackerTest, TwoPushesMakeTwoMessages) {
  tracker_.Trained(1, {Result(1)});
  tracker_.Trained(2, {Result(2)});
  tracker_.Retired(1, false, now_);
  tracker_.Retired(2, false, now_);
  EXPECT_EQ(Poll<AcknowledgeMessage>().size(), 2u);
}

TEST_F(WorkTrackerTest, UnansweredResultsAreRepeatedAfterAWhile) {
  tracker_.Trained(1, {Result(1)});
  tracker_.Retired(1, false, now_);
  EXPECT_EQ(Poll<AcknowledgeMessage>().size(), 1u);
  EXPECT_TRUE(Poll<AcknowledgeMessage>().empty());
  now_ = *tracker_.NextPoll();
  EXPECT_EQ(Poll<AcknowledgeMessage>().size(), 1u);
}

TEST_F(WorkTrackerTest, UnansweredResultsGoToWhoeverOwnsThePartNow) {
  tracker_.Trained(1, {Result(1)});
  tracker_.Retired(1, false, now_);
  EXPECT_EQ(Poll<AcknowledgeMessage>().size(), 1u);
  SetOwners(2, {1, 1});
  const auto messages = Poll<AcknowledgeMessage>();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].server, 1u);
}

TEST_F(WorkTrackerTest, UnansweredResultsAreRepeatedOnANewStream) {
  tracker_.Trained(1, {Result(1)});
  tracker_.OnDisconnected(0);
  tracker_.Retired(1, false, now_);
  EXPECT_TRUE(Poll<AcknowledgeMessage>().empty());
  tracker_.OnConnected(0);
  EXPECT_EQ(Poll<AcknowledgeMessage>().size(), 1u);
  tracker_.OnDisconnected(0);
  tracker_.OnConnected(0);
  EXPECT_EQ(Poll<AcknowledgeMessage>().size(), 1u);
}

TEST_F(WorkTrackerTest, BatchesOfARefusedPushAreHandedBack) {
  tracker_.Trained(1, {Result(1), Result(2)});
  tracker_.Retired(1, true, now_);
  const auto messages = Poll<HandBackMessage>();
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].leases, (std::vector{Result(1).lease, Result(2).lease}));
  EXPECT_TRUE(tracker_.Idle());
}

TEST_F(WorkTrackerTest, HandedBackBatchesGoToAServerThatTheMapDoesNotNameYet) {
  tracker_.HandBack({Result(1, 0).lease});  // dispatched by server 1, which has just got part 0
  const auto messages = Poll<HandBackMessage>();
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[1].server, 1u);
  EXPECT_EQ(messages[1].leases, std::vector{Result(1).lease});
  EXPECT_TRUE(Poll<HandBackMessage>().empty()) << "once is enough";
}

TEST_F(WorkTrackerTest, HandedBackBatchesWaitForTheStream) {
  tracker_.OnDisconnected(0);
  tracker_.HandBack({Result(1).lease});
  EXPECT_TRUE(Poll<HandBackMessage>().empty());
  EXPECT_FALSE(tracker_.Idle());
  tracker_.OnConnected(0);
  EXPECT_EQ(Poll<HandBackMessage>().size(), 2u);
}

TEST_F(WorkTrackerTest, AClosedEpochVoidsItsTrainingLeasesAndNoOthers) {
  tracker_.Trained(1, {Result(1), Result(2, 0, 2)});
  tracker_.HandBack({Result(3).lease});
  tracker_.OnEpochClosed(1);
  tracker_.Retired(1, false, now_);
  const auto messages = Poll<AcknowledgeMessage>();
  ASSERT_EQ(messages.size(), 1u);
  ASSERT_EQ(messages[0].results.size(), 1u);
  EXPECT_EQ(messages[0].results[0].lease.id, 2u);
  LeaseResult evaluated = Result(4);
  evaluated.lease.batch.kind = WorkKind::kEvaluate;
  tracker_.Evaluated(evaluated, now_);
  EXPECT_EQ(Poll<AcknowledgeMessage>().size(), 1u);
}

}  // namespace
}  // namespace adamant::worker
