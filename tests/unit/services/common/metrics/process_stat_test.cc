#include "services/common/metrics/process_stat.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace adamant::metrics {
namespace {

constexpr char kAfterName[] =
    " S 1 4242 4242 0 -1 4194560 2109 0 3 0 150 50 7 9 20 0 12 0 98765 104857600 2560 "
    "18446744073709551615 1 1 0 0\n";

TEST(ProcessStatTest, FieldsAreThoseOfTheKernel) {
  const ProcessStat expected{.processor_ticks = 200,
                             .start_ticks = 98765,
                             .virtual_bytes = 104857600,
                             .resident_pages = 2560};
  EXPECT_EQ(ParseProcessStat("4242 (adamant)" + std::string(kAfterName)), expected);
}

TEST(ProcessStatTest, ANameMayLookLikeTheRestOfTheLine) {
  const auto stat = ParseProcessStat("4242 (a) R 9 (b c))" + std::string(kAfterName));
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->start_ticks, 98765u);
}

TEST(ProcessStatTest, WhatIsNoSuchLineIsNotRead) {
  for (const char* text : {"",
                           "4242",
                           "4242 (adamant)",
                           "4242 (adamant) S 1 2 3",
                           "1 (a) S 1 2 3 4 5 6 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 0\n"}) {
    EXPECT_EQ(ParseProcessStat(text), std::nullopt) << text;
  }
}

TEST(ProcessStatTest, TheTimeOfTheBootIsALineOfItsOwn) {
  EXPECT_EQ(ParseBootTime("cpu  1 2\nintr 5 0\nctxt 7\nbtime 1700000000\nprocesses 9\n"),
            1700000000u);
  EXPECT_EQ(ParseBootTime("cpu  1 2\n"), std::nullopt);
  EXPECT_EQ(ParseBootTime("cpu  1 2\nbtime soon\n"), std::nullopt);
}

}  // namespace
}  // namespace adamant::metrics
