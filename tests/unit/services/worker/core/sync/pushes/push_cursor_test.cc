#include "services/worker/core/sync/pushes/push_cursor.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace adamant::worker {
namespace {

/// Sends what may go to server 1, up to push `last`; returns the sequences.
std::vector<Sequence> Send(PushCursor& cursor, Sequence last) {
  std::vector<Sequence> sent;
  while (const std::optional<PushCursor::Update> update = cursor.Send(1, last)) {
    sent.push_back(update->sequence);
  }
  return sent;
}

class PushCursorTest : public testing::Test {
 protected:
  /// Pushes up to this one are sent and acknowledged, under configuration 10 of the bucket.
  void Serve(Sequence last) {
    Send(cursor_, last);
    cursor_.OnServed(last, {.persisted = 1, .configuration_version = 10});
  }

  PushCursor cursor_;
};

TEST_F(PushCursorTest, SendsEachUpdateOnceAndNoMoreThanAWindowWithoutAnAnswer) {
  EXPECT_EQ(Send(cursor_, 3), (std::vector<Sequence>{1, 2, 3}));
  EXPECT_TRUE(Send(cursor_, 3).empty());
  EXPECT_EQ(Send(cursor_, 100).back(), 8u);
  cursor_.OnServed(2, {});
  EXPECT_EQ(Send(cursor_, 100), (std::vector<Sequence>{9, 10}));
  EXPECT_EQ(cursor_.sent(), 10u);
}

TEST_F(PushCursorTest, WhatIsInFlightIsSentAgainAndEarlierAnswersAreVoid) {
  Serve(2);
  Send(cursor_, 4);
  EXPECT_TRUE(cursor_.Heeds(6));
  cursor_.OnDisconnected(0, 7);
  EXPECT_TRUE(cursor_.Heeds(6)) << "another server";
  cursor_.OnDisconnected(1, 7);
  EXPECT_FALSE(cursor_.Heeds(6));
  EXPECT_TRUE(cursor_.Heeds(7));
  EXPECT_EQ(Send(cursor_, 4), (std::vector<Sequence>{3, 4}));
}

TEST_F(PushCursorTest, TheNextPrimaryIsSentWhatTheLastDidNotAcknowledge) {
  Serve(2);
  Send(cursor_, 3);
  cursor_.OnPlacement({.version = 11, .primary = 1}, 1, 7);
  EXPECT_TRUE(Send(cursor_, 3).empty()) << "it stays";
  cursor_.OnPlacement({.version = 12, .primary = 2}, 1, 8);
  EXPECT_EQ(cursor_.server(), 2u);
  EXPECT_EQ(Send(cursor_, 3), std::vector<Sequence>{3});
}

TEST_F(PushCursorTest, ABucketFromDiskIsAskedForItsNewestUpdateAndHasNothingOnDisk) {
  Serve(3);
  EXPECT_EQ(cursor_.persisted(), 1u);
  cursor_.OnPlacement({.version = 11, .generation = 1, .primary = 1}, 2, 7);
  EXPECT_EQ(cursor_.persisted(), 0u);
  EXPECT_EQ(cursor_.acknowledged(), 2u);
  EXPECT_TRUE(cursor_.WasAcknowledged(3));
  EXPECT_FALSE(cursor_.WasAcknowledged(4));
  EXPECT_EQ(Send(cursor_, 3), std::vector<Sequence>{3});
}

TEST_F(PushCursorTest, ARewindCountsWhatIsNoLongerHeldOnceAndSkipsIt) {
  Serve(5);
  EXPECT_EQ(cursor_.Rewind(2, 4), 2u);  // 2 and 3
  cursor_.Reset(7);
  cursor_.SkipGone(2);
  const std::optional<PushCursor::Update> first = cursor_.Send(1, 6);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->sequence, 4u);
  EXPECT_TRUE(first->after_loss);
  const std::optional<PushCursor::Update> second = cursor_.Send(1, 6);
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(second->after_loss);
  EXPECT_EQ(cursor_.Rewind(1, 4), 1u);
}

TEST_F(PushCursorTest, ARefusedUpdateIsInNoHistory) {
  Send(cursor_, 3);
  cursor_.OnRefused(1);
  EXPECT_EQ(cursor_.acknowledged(), 1u);
  cursor_.Reset(7);
  EXPECT_EQ(Send(cursor_, 3), (std::vector<Sequence>{2, 3}));
}

TEST_F(PushCursorTest, OnlyAValueOfALaterConfigurationShowsARollback) {
  Serve(3);
  EXPECT_FALSE(cursor_.IsRolledBack(2, 10)) << "the value may be the older of the two";
  EXPECT_TRUE(cursor_.IsRolledBack(2, 11));
  EXPECT_FALSE(cursor_.IsRolledBack(3, 11));
}

}  // namespace
}  // namespace adamant::worker
