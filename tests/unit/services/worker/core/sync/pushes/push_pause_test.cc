#include "services/worker/core/sync/pushes/push_pause.h"

#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

using std::chrono::seconds;

TEST(PushPauseTest, LastsUntilItsCheckpointResumes) {
  PushPause pause;
  Clock::TimePoint now{};
  EXPECT_FALSE(pause.active());
  EXPECT_EQ(pause.NextAdvance(), std::nullopt);
  pause.Begin(5, now);
  EXPECT_TRUE(pause.active());
  EXPECT_EQ(pause.TakeDue(), 5u);
  EXPECT_EQ(pause.TakeDue(), std::nullopt);
  now += seconds(2);
  pause.Resume(4);
  pause.Advance(now);
  EXPECT_TRUE(pause.active()) << "an older checkpoint's resume";
  pause.Resume(5);
  pause.Advance(now);
  EXPECT_FALSE(pause.active());
  EXPECT_EQ(pause.paused(), seconds(2));
}

TEST(PushPauseTest, IsAnsweredAgainWhenRepeatedAndMovesOnToNewerCheckpoints) {
  PushPause pause;
  const Clock::TimePoint now{};
  pause.Begin(5, now);
  EXPECT_EQ(pause.TakeDue(), 5u);
  pause.Begin(5, now);
  EXPECT_EQ(pause.TakeDue(), 5u);
  pause.Begin(4, now);
  EXPECT_EQ(pause.TakeDue(), std::nullopt);
  pause.Begin(6, now);
  EXPECT_EQ(pause.TakeDue(), 6u);
}

TEST(PushPauseTest, EndsByItselfWhenTheControllerIsSilent) {
  PushPause pause;
  Clock::TimePoint now{};
  pause.Begin(5, now);
  now += seconds(20);
  pause.Begin(5, now);
  now += seconds(20);
  pause.Advance(now);
  EXPECT_TRUE(pause.active());
  EXPECT_EQ(pause.NextAdvance(), now + PushPause::kTimeout - seconds(20));
  now += PushPause::kTimeout - seconds(20);
  pause.Advance(now);
  EXPECT_FALSE(pause.active());
  EXPECT_EQ(pause.paused(), PushPause::kTimeout + seconds(20));
}

}  // namespace
}  // namespace adamant::worker
