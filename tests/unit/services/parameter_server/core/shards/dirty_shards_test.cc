#include "services/parameter_server/core/shards/dirty_shards.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.h"

namespace adamant::parameter_server {
namespace {

using std::chrono::milliseconds;

class DirtyShardsTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  int due_changes_ = 0;
  DirtyShards dirty_{
      {.interval = milliseconds(1000), .bytes = 100}, clock_, [this] { ++due_changes_; }};
};

TEST_F(DirtyShardsTest, NothingDirtyIsNeverDue) {
  EXPECT_EQ(dirty_.DueAt(), Clock::TimePoint::max());
  EXPECT_EQ(dirty_.OldestAge(), milliseconds(0));
}

TEST_F(DirtyShardsTest, AFlushBeginsAtHalfTheIntervalOfTheOldest) {
  const auto start = clock_.Now();
  dirty_.Add(4, 10);
  clock_.Advance(milliseconds(300));
  dirty_.Add(2, 10);
  EXPECT_EQ(dirty_.DueAt(), start + milliseconds(500));
  EXPECT_EQ(dirty_.OldestAge(), milliseconds(300));
  EXPECT_EQ(due_changes_, 1);
}

TEST_F(DirtyShardsTest, AFlushThatIsWantedAgainIsDueWithNothingDirty) {
  const auto start = clock_.Now();
  dirty_.FlushAgain();
  clock_.Advance(milliseconds(300));
  dirty_.FlushAgain();
  EXPECT_EQ(dirty_.DueAt(), start + milliseconds(500));
  EXPECT_EQ(due_changes_, 1);
  dirty_.Hurry();
  EXPECT_EQ(dirty_.DueAt(), start);
  EXPECT_TRUE(dirty_.Take().empty());
  EXPECT_EQ(dirty_.DueAt(), Clock::TimePoint::max());
  dirty_.Return();
  EXPECT_EQ(dirty_.DueAt(), start) << "it could not be stored";
  dirty_.Take();
  dirty_.Written();
  EXPECT_EQ(dirty_.DueAt(), Clock::TimePoint::max());
}

TEST_F(DirtyShardsTest, TheByteLimitMakesItDueAtOnce) {
  dirty_.Add(1, 60);
  dirty_.Add(2, 39);
  EXPECT_GT(dirty_.DueAt(), clock_.Now());
  dirty_.Add(3, 1);
  EXPECT_EQ(dirty_.DueAt(), clock_.Now());
  EXPECT_EQ(due_changes_, 2);
}

TEST_F(DirtyShardsTest, WhatIsDueAtOnceStaysSoAsTimeGoesOn) {
  dirty_.Add(1, 60);
  dirty_.Hurry();
  const auto asked = clock_.Now();
  clock_.Advance(milliseconds(1));
  EXPECT_LE(dirty_.DueAt(), asked);
  EXPECT_EQ(due_changes_, 2);
  dirty_.Take();
  dirty_.Add(1, 60);
  EXPECT_GT(dirty_.DueAt(), clock_.Now()) << "what came later was not asked for";
  dirty_.Add(2, 40);
  const auto full = clock_.Now();
  clock_.Advance(milliseconds(1));
  EXPECT_LE(dirty_.DueAt(), full);
}

TEST_F(DirtyShardsTest, WhatIsTakenCountsUntilItIsWritten) {
  dirty_.Add(4, 10);
  dirty_.Add(2, 20);
  clock_.Advance(milliseconds(100));
  const auto taken = dirty_.Take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].shard, 2u);
  EXPECT_EQ(taken[1].shard, 4u);
  EXPECT_EQ(dirty_.DueAt(), Clock::TimePoint::max());
  EXPECT_EQ(dirty_.bytes(), 30u);
  EXPECT_EQ(dirty_.OldestAge(), milliseconds(100));
  dirty_.Written();
  EXPECT_EQ(dirty_.bytes(), 0u);
  EXPECT_EQ(dirty_.OldestAge(), milliseconds(0));
}

TEST_F(DirtyShardsTest, WhatIsReturnedIsAsOldAsBeforeAndCountedOnce) {
  const auto start = clock_.Now();
  dirty_.Add(4, 10);
  dirty_.Take();
  clock_.Advance(milliseconds(100));
  dirty_.Add(4, 10);
  dirty_.Return();
  EXPECT_EQ(dirty_.bytes(), 10u);
  EXPECT_EQ(dirty_.OldestAge(), milliseconds(100));
  EXPECT_EQ(dirty_.DueAt(), start + milliseconds(500));
}

TEST_F(DirtyShardsTest, WhatWasAskedForAndIsReturnedIsStillDueAtOnce) {
  dirty_.Add(4, 10);
  dirty_.Hurry();
  dirty_.Take();
  dirty_.Return();
  EXPECT_LE(dirty_.DueAt(), clock_.Now());
  dirty_.Take();
  dirty_.Written();
  dirty_.Add(4, 10);
  EXPECT_GT(dirty_.DueAt(), clock_.Now());
}

}  // namespace
}  // namespace adamant::parameter_server
