#include "services/worker/core/sync/pushes/push_pause.h"

#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

using std::chrono::seconds;

TEST(PushPauseTest, LastsUntilItsCheckpointIsReleased) {
  PushPause hold;
  Clock::TimePoint now{};
  EXPECT_FALSE(hold.active());
  EXPECT_EQ(hold.NextAdvance(), std::nullopt);
  hold.Begin(5, now);
  EXPECT_TRUE(hold.active());
  EXPECT_EQ(hold.TakeDue(), 5u);
  EXPECT_EQ(hold.TakeDue(), std::nullopt);
  now += seconds(2);
  hold.Release(4);
  hold.Advance(now);
  EXPECT_TRUE(hold.active()) << "an older checkpoint's release";
  hold.Release(5);
  hold.Advance(now);
  EXPECT_FALSE(hold.active());
  EXPECT_EQ(hold.held(), seconds(2));
}

TEST(PushPauseTest, IsAnsweredAgainWhenRepeatedAndMovesOnToNewerCheckpoints) {
  PushPause hold;
  const Clock::TimePoint now{};
  hold.Begin(5, now);
  EXPECT_EQ(hold.TakeDue(), 5u);
  hold.Begin(5, now);
  EXPECT_EQ(hold.TakeDue(), 5u);
  hold.Begin(4, now);
  EXPECT_EQ(hold.TakeDue(), std::nullopt);
  hold.Begin(6, now);
  EXPECT_EQ(hold.TakeDue(), 6u);
}

TEST(PushPauseTest, EndsByItselfWhenTheControllerIsSilent) {
  PushPause hold;
  Clock::TimePoint now{};
  hold.Begin(5, now);
  now += seconds(20);
  hold.Begin(5, now);
  now += seconds(20);
  hold.Advance(now);
  EXPECT_TRUE(hold.active());
  EXPECT_EQ(hold.NextAdvance(), now + PushPause::kTimeout - seconds(20));
  now += PushPause::kTimeout - seconds(20);
  hold.Advance(now);
  EXPECT_FALSE(hold.active());
  EXPECT_EQ(hold.held(), PushPause::kTimeout + seconds(20));
}

}  // namespace
}  // namespace adamant::worker
