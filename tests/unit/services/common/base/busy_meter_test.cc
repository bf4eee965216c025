#include "services/common/base/busy_meter.h"

#include <gtest/gtest.h>

#include <vector>

namespace adamant {
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

TEST_F(BusyMeterTest, ThreadsThatComeAndGoAreNotTakenForOneThatStays) {
  Turns turns;
  const std::size_t slow = turns.Begin();
  After(seconds(1), turns.all());
  for (int i = 0; i < 3; ++i) {
    const std::size_t quick = turns.Begin();
    EXPECT_NE(quick, slow);
    EXPECT_EQ(After(seconds(1), turns.all()), seconds(i + 1));
    turns.End(quick);
  }
  EXPECT_EQ(turns.all().size(), 2U);
  turns.End(slow);
  EXPECT_EQ(After(seconds(1), turns.all()), seconds(0));
  for (int i = 0; i < 3; ++i) {  // one after another, in the same place
    const std::size_t next = turns.Begin();
    EXPECT_EQ(After(seconds(1), turns.all()), seconds(0));
    turns.End(next);
  }
}

}  // namespace
}  // namespace adamant
