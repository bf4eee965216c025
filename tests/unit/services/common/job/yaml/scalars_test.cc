#include "services/common/job/yaml/scalars.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace adamant::job {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

TEST(ScalarsTest, IntegersAreDigitsWithASign) {
  EXPECT_EQ(ParseInteger("42"), 42);
  EXPECT_EQ(ParseInteger("-7"), -7);
  EXPECT_EQ(ParseInteger("007"), 7);
  for (const char* text : {"", "-", "+1", "1.0", "1e3", "0x10", "1_000", " 1", "1 ", "ten"}) {
    EXPECT_EQ(ParseInteger(text), std::nullopt) << text;
  }
}

TEST(ScalarsTest, IntegersBeyondTheTypeBecomeItsLimits) {
  EXPECT_EQ(ParseInteger("9223372036854775807"), kLargest);
  EXPECT_EQ(ParseInteger("9223372036854775808"), kLargest);
  EXPECT_EQ(ParseInteger("-99999999999999999999"), std::numeric_limits<std::int64_t>::min());
}

TEST(ScalarsTest, RealsAreDecimalNumbers) {
  EXPECT_EQ(ParseReal("0.5"), 0.5);
  EXPECT_EQ(ParseReal("-1e-3"), -1e-3);
  EXPECT_EQ(ParseReal("3"), 3);
  EXPECT_EQ(ParseReal(".5"), 0.5);
  for (const char* text :
       {"", "-", "nan", ".nan", "inf", "-.inf", "infinity", "1.5x", "0x1p3", "1,5"}) {
    EXPECT_EQ(ParseReal(text), std::nullopt) << text;
  }
}

TEST(ScalarsTest, RealsBeyondTheTypeBecomeItsLimitsOrZero) {
  EXPECT_EQ(ParseReal("1e999"), std::numeric_limits<double>::max());
  EXPECT_EQ(ParseReal("-1e999"), std::numeric_limits<double>::lowest());
  EXPECT_EQ(ParseReal("1e-999"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(ParseReal("-1e-999"), -std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(ParseReal("0e-999"), 0);
}

TEST(ScalarsTest, BytesTakeBinaryAndDecimalSuffixes) {
  EXPECT_EQ(ParseBytes("4096"), 4096);
  EXPECT_EQ(ParseBytes("64Mi"), std::int64_t{64} << 20);
  EXPECT_EQ(ParseBytes("1.5Gi"), std::int64_t{3} << 29);
  EXPECT_EQ(ParseBytes("2G"), 2'000'000'000);
  EXPECT_EQ(ParseBytes("3k"), 3000);
  EXPECT_EQ(ParseBytes("99999999999Ti"), kLargest);
  for (const char* text : {"", "Mi", "64MB", "64mi", "1.2", "-1", "1.", "1 Mi", "1.5"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

TEST(ScalarsTest, DurationsAreNumbersWithUnits) {
  EXPECT_EQ(ParseDuration("5s"), seconds(5));
  EXPECT_EQ(ParseDuration("1h30m"), minutes(90));
  EXPECT_EQ(ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(ParseDuration("1.5s"), milliseconds(1500));
  EXPECT_EQ(ParseDuration("1m30.5s"), milliseconds(90500));
  EXPECT_EQ(ParseDuration("0s"), seconds(0));
  EXPECT_EQ(ParseDuration("999999999999h"), nanoseconds(kLargest));
  for (const char* text : {"", "5", "s", "5d", "-5s", "5 s", "1h30", "0.5ns", "5sm5"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(ScalarsTest, WhatIsFormattedParsesToTheSameValue) {
  for (const double value : {0.0, 0.1, 1.0, -2.5, 1e-8, 1e300, 0.0001, 1.0 / 3, 123456789.0}) {
    EXPECT_EQ(ParseReal(FormatReal(value)), value) << FormatReal(value);
  }
  for (const std::int64_t bytes : {0L, 1L, 1024L, 1536L, 64L << 20, 5L << 40, 1000000L}) {
    EXPECT_EQ(ParseBytes(FormatBytes(bytes)), bytes) << FormatBytes(bytes);
  }
  for (const nanoseconds duration : {nanoseconds(0),
                                     nanoseconds(1),
                                     nanoseconds(milliseconds(1500)),
                                     nanoseconds(hours(26)),
                                     nanoseconds(123456789012345)}) {
    EXPECT_EQ(ParseDuration(FormatDuration(duration)), duration) << FormatDuration(duration);
  }
}

TEST(ScalarsTest, ValuesAreFormattedAsPeopleWriteThem) {
  EXPECT_EQ(FormatReal(0.0001), "0.0001");
  EXPECT_EQ(FormatReal(10), "10");
  EXPECT_EQ(FormatBytes(std::int64_t{64} << 20), "64Mi");
  EXPECT_EQ(FormatBytes(1000), "1000");
  EXPECT_EQ(FormatDuration(minutes(90)), "1h30m");
  EXPECT_EQ(FormatDuration(milliseconds(250)), "250ms");
}

}  // namespace
}  // namespace adamant::job
