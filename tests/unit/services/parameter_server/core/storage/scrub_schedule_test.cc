#include "services/parameter_server/core/storage/scrub_schedule.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace adamant::parameter_server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ScrubScheduleTest : public ::testing::Test {
 protected:
  /// A pass over so many shards.
  void Begin(ShardId shards) {
    std::vector<ScrubbedValue> values;
    for (ShardId shard = 0; shard < shards; ++shard) {
      values.push_back({.shard = shard});
    }
    schedule_.Begin(values);
  }

  [[nodiscard]] Clock::Duration Wait() const { return schedule_.DueAt() - clock_.Now(); }

  FakeClock clock_;
  ScrubSchedule schedule_{{.pass = seconds(6), .pause = seconds(2)}, clock_};
};

TEST_F(ScrubScheduleTest, BeginsAfterAPause) {
  EXPECT_TRUE(schedule_.IsOver());
  EXPECT_EQ(schedule_.Next(), nullptr);
  EXPECT_EQ(Wait(), seconds(2));
}

TEST_F(ScrubScheduleTest, EachValueComesOnceInAPass) {
  Begin(2);
  EXPECT_EQ(schedule_.Next()->shard, 0u);
  EXPECT_FALSE(schedule_.IsOver());
  EXPECT_EQ(schedule_.Next()->shard, 1u);
  EXPECT_TRUE(schedule_.IsOver());
  EXPECT_EQ(schedule_.Next(), nullptr);
}

TEST_F(ScrubScheduleTest, APassTakesNoLongerThanItMay) {
  Begin(2);
  schedule_.Finish(true, false);
  EXPECT_EQ(Wait(), seconds(2));
  Begin(12);
  schedule_.Finish(true, false);
  EXPECT_EQ(Wait(), milliseconds(500));
}

TEST_F(ScrubScheduleTest, AfterDamageAsManyAsAPassHasAreReadAtOnce) {
  Begin(2);
  schedule_.Finish(true, true);
  EXPECT_EQ(Wait(), seconds(0));
  schedule_.Finish(true, true);  // is found again, and does not begin the hurry again
  EXPECT_EQ(Wait(), seconds(0));
  schedule_.Finish(true, false);
  EXPECT_EQ(Wait(), seconds(2));
}

TEST_F(ScrubScheduleTest, DamageThatOthersFindHurriesAtOnce) {
  Begin(1);
  schedule_.Hurry();
  EXPECT_EQ(Wait(), seconds(0));
  schedule_.Finish(true, false);
  EXPECT_EQ(Wait(), seconds(2));
}

TEST_F(ScrubScheduleTest, WhereThereIsNothingToReadNobodyHurries) {
  Begin(2);
  schedule_.Hurry();
  schedule_.Finish(false, false);
  EXPECT_EQ(Wait(), seconds(2));
}

}  // namespace
}  // namespace adamant::parameter_server
