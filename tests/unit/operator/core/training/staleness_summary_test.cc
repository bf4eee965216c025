#include "operator/core/training/staleness_summary.h"

#include <gtest/gtest.h>

namespace adamant::controller {
namespace {

TEST(StalenessSummaryTest, BucketsCountAsTheirMiddleAndQuantilesAsTheirLargest) {
  const StalenessSummary staleness = Summarise({50, 0, 40, 10});  // 0; 1; 2..3; 4..7
  EXPECT_DOUBLE_EQ(staleness.mean, (40 * 2.5 + 10 * 5.5) / 100);
  EXPECT_EQ(staleness.p50, 0u);
  EXPECT_EQ(staleness.p99, 7u);
  EXPECT_EQ(Summarise({}).p99, 0u);
}

}  // namespace
}  // namespace adamant::controller
