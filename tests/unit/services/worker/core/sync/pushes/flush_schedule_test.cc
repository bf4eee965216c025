#include "services/worker/core/sync/pushes/flush_schedule.h"

#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

using std::chrono::milliseconds;

TEST(FlushScheduleTest, AsksAtOnceAndThenEverMoreSeldom) {
  Clock::TimePoint now = Clock::TimePoint{} + milliseconds(1);
  FlushSchedule schedule;
  EXPECT_FALSE(schedule.wanted());
  schedule.Want(true);
  EXPECT_TRUE(schedule.wanted());
  for (const int wait : {25, 50, 100, 200, 400, 400}) {
    EXPECT_TRUE(schedule.Due(now));
    schedule.OnAsked(now);
    EXPECT_EQ(schedule.at() - now, milliseconds(wait));
    EXPECT_FALSE(schedule.Due(schedule.at() - milliseconds(1)));
    now = schedule.at();
  }
}

TEST(FlushScheduleTest, BeginsAnewWhenSomethingWasWrittenOrItIsWantedAgain) {
  const Clock::TimePoint now = Clock::TimePoint{} + milliseconds(1);
  FlushSchedule schedule;
  schedule.Want(true);
  schedule.OnAsked(now);
  schedule.OnAsked(now);
  schedule.OnReleased();
  schedule.OnAsked(now);
  EXPECT_EQ(schedule.at(), now + milliseconds(25));
  schedule.Want(true);
  EXPECT_FALSE(schedule.Due(now)) << "it was wanted all along";
  schedule.Want(false);
  schedule.Want(true);
  EXPECT_TRUE(schedule.Due(now));
}

}  // namespace
}  // namespace adamant::worker
