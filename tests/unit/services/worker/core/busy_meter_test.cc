#include "services/worker/core/busy_meter.h"

#include <gtest/gtest.h>

#include <vector>

namespace adamant::worker {
namespace {

using std::chrono::seconds;

class BusyMeterTest : public testing::Test {
 protected:
  Clock::Duration After(seconds passed, const std::vector<std::uint64_t>& turns) {
    now_ += passed;
    return meter_.Look(turns, now_);
  }

  BusyMeter meter_;
  Clock::TimePoint now_{std::chrono::hours(1)};
};

TEST_F(BusyMeterTest, TimeAtOnePieceOfWorkAddsUp) {
  EXPECT_EQ(After(seconds(1), {1, 0}), seconds(0));
  EXPECT_EQ(After(seconds(1), {1, 0}), seconds(1));
  EXPECT_EQ(After(seconds(1), {1, 7}), seconds(2));
  EXPECT_EQ(After(seconds(1), {1, 7}), seconds(3)) << "the longest of all threads";
}

TEST_F(BusyMeterTest, WhoeverGoesOnBeginsAnew) {
  After(seconds(1), {1});
  After(seconds(1), {1});
  EXPECT_EQ(After(seconds(1), {3}), seconds(0)) << "the next piece";
  EXPECT_EQ(After(seconds(1), {3}), seconds(1));
}

TEST_F(BusyMeterTest, WhoeverWaitsIsNotBusy) {
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(After(seconds(1), {4, 0}), seconds(0));
  }
}

TEST_F(BusyMeterTest, AProcessThatStoodStillWasNotBusyMeanwhile) {
  After(seconds(1), {1});
  EXPECT_EQ(After(seconds(3600), {1}), BusyMeter::kLongestStep);
}

}  // namespace
}  // namespace adamant::worker
