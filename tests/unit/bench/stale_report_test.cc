#include "tests/bench/stale/stale_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace adamant::bench {
namespace {

using ::testing::HasSubstr;

constexpr Chance kTenClasses = {.classes = 10, .examples = 10'000, .most_frequent = 1'135};

Moment After(std::uint64_t examples, double loss_sum) {
  return {.epochs = static_cast<double>(examples) / 1000,
          .steps = 1,
          .examples = examples,
          .loss_sum = loss_sum};
}

TEST(StaleReportTest, MeansAreThoseOfTheStretch) {
  StaleReport report(kTenClasses, /*target=*/0.9);
  Moment now = After(1000, 2000);
  now.staleness[2] = 4;  // 2 to 3
  const nlohmann::json first = report.Evaluated(now, 0.5);
  EXPECT_EQ(first["loss"], 2.0);
  EXPECT_EQ(first["staleness_batches"], 2.5);
  now = After(3000, 3000);
  now.staleness[2] = 4;
  now.staleness[3] = 1;  // 4 to 7
  const nlohmann::json second = report.Evaluated(now, 0.5);
  EXPECT_EQ(second["loss"], 0.5);
  EXPECT_EQ(second["staleness_batches"], 5.5);
}

TEST(StaleReportTest, SummaryHasTheBestAndWhenTheTargetWasReached) {
  StaleReport report(kTenClasses, /*target=*/0.9);
  report.Evaluated(After(1000, 1), 0.8);
  report.Evaluated(After(2000, 2), 0.95);
  report.Evaluated(After(3000, 3), 0.92);
  const nlohmann::json summary = report.Summary(After(3000, 3));
  EXPECT_EQ(summary["top1"], 0.92);
  EXPECT_EQ(summary["best_top1"], 0.95);
  EXPECT_EQ(summary["examples_to_target"], 2000);
  EXPECT_EQ(summary["at_chance"], false);
  EXPECT_TRUE(report.JudgeEnd().ok());
}

TEST(StaleReportTest, UnreachedTargetIsNull) {
  StaleReport report(kTenClasses, /*target=*/0.9);
  report.Evaluated(After(1000, 1), 0.8);
  EXPECT_TRUE(report.Summary(After(1000, 1))["examples_to_target"].is_null());
}

TEST(StaleReportTest, LossFarAboveChanceHasDiverged) {
  StaleReport report(kTenClasses, /*target=*/0.9);
  report.Evaluated(After(1000, 6900), 0.3);
  EXPECT_TRUE(report.Judge().ok());
  report.Evaluated(After(2000, 6900 + 7000), 0.3);
  EXPECT_THAT(report.Judge().message(), HasSubstr("training loss is 7"));
  report.Evaluated(After(3000, std::numeric_limits<double>::quiet_NaN()), 0.3);
  EXPECT_THAT(report.Judge().message(), HasSubstr("not finite"));
}

TEST(StaleReportTest, FallenAccuracyHasDiverged) {
  StaleReport report(kTenClasses, /*target=*/0.9);
  report.Evaluated(After(1000, 1), 0.9);
  report.Evaluated(After(2000, 2), 0.44);
  EXPECT_THAT(report.Judge().message(), HasSubstr("fallen from 0.9 to 0.44"));
}

TEST(StaleReportTest, ModelAtChanceFailsAtTheEndOnly) {
  StaleReport report(kTenClasses, /*target=*/0.9);
  report.Evaluated(After(1000, 2300), 0.1135);
  EXPECT_TRUE(report.Judge().ok());
  EXPECT_THAT(report.JudgeEnd().message(), HasSubstr("most frequent class"));
  EXPECT_EQ(report.Summary(After(1000, 2300))["at_chance"], true);
}

TEST(StaleReportTest, FewExamplesSayNothingOfChance) {
  StaleReport report({.classes = 10, .examples = 500, .most_frequent = 50}, /*target=*/0.9);
  report.Evaluated(After(1000, 1), 0.9);
  report.Evaluated(After(2000, 2), 0.1);
  EXPECT_TRUE(report.Judge().ok());
  EXPECT_TRUE(report.JudgeEnd().ok());
}

}  // namespace
}  // namespace adamant::bench
