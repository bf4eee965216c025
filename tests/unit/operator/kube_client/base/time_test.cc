#include "operator/kube_client/base/time.h"

#include <gtest/gtest.h>

namespace adamant::kube {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

TEST(TimeTest, IsWrittenAsTheApiWritesIt) {
  const WallTime time{seconds(1'769'860'800) + microseconds(42)};
  EXPECT_EQ(FormatTime(time), "2026-01-31T12:00:00Z");
  EXPECT_EQ(FormatMicroTime(time), "2026-01-31T12:00:00.000042Z");
}

TEST(TimeTest, IsReadAsItIsWritten) {
  for (const std::int64_t second : {0LL, 951'782'399LL, 951'782'400LL, 1'769'860'800LL}) {
    const WallTime time{seconds(second) + microseconds(999'999)};
    EXPECT_EQ(*ParseTime(FormatMicroTime(time)), time);
    EXPECT_EQ(*ParseTime(FormatTime(time)), WallTime(seconds(second)));
  }
}

TEST(TimeTest, RefusesWhatIsNoTime) {
  for (const char* text : {"",
                           "2026-01-31",
                           "2026-01-31T12:00:00",
                           "2026-01-31T12:00:00+01:00",
                           "2026-02-30T12:00:00Z",
                           "2026-01-31T24:00:00Z",
                           "2026-01-31T12:60:00Z",
                           "2026-01-31T12:00:00.1Z",
                           "2026-01-31T12:00:00Zx",
                           "-026-01-31T12:00:00Z",
                           "1600-01-31T12:00:00Z",
                           "9999-01-31T12:00:00Z"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTime(text).status())) << text;
  }
}

}  // namespace
}  // namespace adamant::kube
