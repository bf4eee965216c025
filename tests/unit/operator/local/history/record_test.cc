#include "operator/local/history/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/local/history/learning_curve.h"

namespace adamant::local {
namespace {

using controller::EpochResult;
using testing::HasSubstr;

EpochResult Result(DataEpoch epoch) {
  EpochResult result;
  result.epoch = epoch;
  result.snapshot = epoch + 1;
  result.counted = 1000;
  result.trained = 1000;
  result.training_loss = 1.0 / static_cast<double>(epoch);
  result.top1 = 0.9;
  result.validated = 100;
  result.seconds = 2;
  result.update_staleness_counts = {8, 1, 1};
  return result;
}

TEST(CsvTest, RowsHaveTheColumnsOfTheHeader) {
  const std::string header = MetricsCsvHeader();
  const std::string row = MetricsCsvRow(Result(3));
  EXPECT_EQ(std::count(row.begin(), row.end(), ','), std::count(header.begin(), header.end(), ','));
  EXPECT_THAT(row, testing::StartsWith("3,1000,0,0,"));
  EXPECT_THAT(row, HasSubstr(",500.0,"));  // examples per second
}

TEST(CsvTest, WhatWasTrainedBeforeAControllerDiedDoesNotMakeTheEpochFaster) {
  EpochResult result = Result(3);
  result.trained = 100;
  EXPECT_THAT(MetricsCsvRow(result), HasSubstr(",50.0,"));
}

TEST(CsvTest, AnEpochThatNobodyAttendedHasCountsAndEmptyFields) {
  const std::string row = MetricsCsvRow({.epoch = 4, .counted = 1000, .left = 20, .retrained = 7});
  const std::string header = MetricsCsvHeader();
  EXPECT_EQ(std::count(row.begin(), row.end(), ','), std::count(header.begin(), header.end(), ','));
  EXPECT_THAT(row, testing::StartsWith("4,1000,20,7,0,,,,,0,"));
}

TEST(CsvTest, WhatIsNotFiniteIsEmpty) {
  EpochResult result = Result(3);
  result.trained = 1000;
  result.training_loss = std::numeric_limits<double>::infinity();
  result.validation_loss = -std::numeric_limits<double>::quiet_NaN();
  const std::string row = MetricsCsvRow(result);
  EXPECT_THAT(row, testing::StartsWith("3,1000,0,0,1000,,0.000000,0.900000,,100,"));
  EXPECT_THAT(row, testing::Not(testing::AnyOf(HasSubstr("nan"), HasSubstr("inf"))));
}

TEST(CsvTest, TheLastColumnsAreOfTheAttempt) {
  EXPECT_THAT(MetricsCsvHeader(), testing::EndsWith(",snapshot,attempt,batches_of_others_mean\n"));
  EpochResult result = Result(3);
  EXPECT_THAT(MetricsCsvRow(result), testing::EndsWith(",4,1,0.00\n"));
  result.attempt = 2;
  result.batches_of_others = {0, 2, 2};  // 1; 2..3
  EXPECT_THAT(MetricsCsvRow(result), testing::EndsWith(",4,2,1.75\n"));
  const auto json = nlohmann::json::parse(EpochJson("now", result));
  EXPECT_EQ(json["attempt"], 2);
  EXPECT_EQ(json["batches_of_others_mean"], 1.75);
}

// A controller that was killed once all was trained has heard of nothing.
TEST(CsvTest, WhatWasNotMeasuredIsEmpty) {
  EpochResult result = Result(3);
  result.trained = 0;
  result.update_staleness_counts.clear();
  result.evaluation_seconds = 0.5;
  EXPECT_EQ(MetricsCsvRow(result),
            "3,1000,0,0,0,,,0.900000,0.000000,100,2.000,0.500,,,,,0,0,0,4,1,\n");
  const auto json = nlohmann::json::parse(EpochJson("now", result));
  for (const char* field : {"examples_per_second",
                            "staleness_mean",
                            "staleness_p50",
                            "staleness_p99",
                            "batches_of_others_mean"}) {
    EXPECT_TRUE(json.at(field).is_null()) << field;
  }
}

TEST(JsonTest, AnEpochHasTheColumnsOfTheTable) {
  auto json = nlohmann::json::parse(EpochJson("now", Result(3)));
  std::string header = MetricsCsvHeader();
  header.back() = ',';
  for (std::size_t begin = 0; begin < header.size(); begin = header.find(',', begin) + 1) {
    const std::string column = header.substr(begin, header.find(',', begin) - begin);
    EXPECT_EQ(json.erase(column), 1u) << column;
  }
  EXPECT_EQ(json, nlohmann::json::parse(R"({"event": "epoch", "time": "now"})"));
}

TEST(SortByTimeTest, ALaterAttemptComesAfterTheEpochsThatItHasUndone) {
  std::vector<EpochResult> results;
  for (const auto& [attempt, epoch] : {std::pair{10, 1}, {2, 3}, {1, 3}, {2, 2}, {1, 2}}) {
    results.push_back(Result(static_cast<std::uint64_t>(epoch)));
    results.back().attempt = static_cast<std::uint64_t>(attempt);
  }
  SortByTime(results);
  std::string order;
  for (const EpochResult& result : results) {
    order += std::to_string(result.attempt) + ":" + std::to_string(result.epoch) + " ";
  }
  EXPECT_EQ(order, "1:2 1:3 2:2 2:3 10:1 ");
}

TEST(JsonTest, WhatIsNotKnownOfAnEpochIsNull) {
  const auto json = nlohmann::json::parse(EpochJson("now", {.epoch = 4, .counted = 1000}));
  EXPECT_TRUE(json["top1"].is_null());
  EXPECT_TRUE(json["training_loss"].is_null());
  EXPECT_EQ(json["examples_counted"], 1000);
}

TEST(JsonTest, WhatIsNotKnownOfAJobIsNull) {
  controller::JobReport report;
  auto json = nlohmann::json::parse(ProgressJson("now", report));
  EXPECT_TRUE(json["top1"].is_null());
  EXPECT_TRUE(json["training_loss"].is_null());
  EXPECT_TRUE(json["examples"].is_null());
  EXPECT_TRUE(json["examples_total"].is_null());
  report.total_examples = 1000;
  json = nlohmann::json::parse(ProgressJson("now", report));
  EXPECT_EQ(json["examples"], 0);
  EXPECT_EQ(json["examples_total"], 1000);
  report.accuracy = 0.5;
  report.training_loss = 1.25;
  json = nlohmann::json::parse(ProgressJson("now", report));
  EXPECT_EQ(json["top1"], 0.5);
  EXPECT_EQ(json["training_loss"], 1.25);
}

TEST(JsonTest, LinesAreObjectsAlsoWithStrangeText) {
  const controller::Note note{.kind = controller::Note::Kind::kFailure,
                              .member = controller::SlotId{controller::Role::kWorker, 2},
                              .epoch = 0,
                              .text = "a \"quote\"\n and \xff"};
  const std::string line = NoteJson("now", note);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["event"], "failure");
  EXPECT_EQ(json["member"], "worker-2");
  EXPECT_EQ(nlohmann::json::parse(EpochJson("now", Result(3)))["examples_counted"], 1000);
  EXPECT_EQ(nlohmann::json::parse(ProgressJson("now", {}))["phase"], "Pending");
}

TEST(RoundStepTest, IsOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_DOUBLE_EQ(RoundStep(1, 5), 0.2);
  EXPECT_DOUBLE_EQ(RoundStep(0.9, 5), 0.2);
  EXPECT_DOUBLE_EQ(RoundStep(7, 2), 5);
  EXPECT_DOUBLE_EQ(RoundStep(1000, 10), 100);
}

TEST(LearningCurveTest, DrawsALinePerSeriesAndEscapesTheName) {
  EXPECT_THAT(DrawLearningCurve("none yet", {}), HasSubstr("</svg>"));
  const std::string svg = DrawLearningCurve("a<b&c", {Result(1), Result(2), Result(3)});
  EXPECT_THAT(svg, HasSubstr("a&lt;b&amp;c"));
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = svg.find("<polyline", at)) != std::string::npos; ++at) {
    ++lines;
  }
  EXPECT_EQ(lines, 4u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(LearningCurveTest, LeavesOutWhatIsNotKnown) {
  const EpochResult unattended{.epoch = 2, .counted = 1000};
  const std::string svg = DrawLearningCurve("gap", {Result(1), unattended, Result(3)});
  EXPECT_EQ(DrawLearningCurve("gap", {Result(1), Result(3)}), svg);
  const std::string empty = DrawLearningCurve("empty", {unattended});
  EXPECT_EQ(empty.find("nan"), std::string::npos);
  EXPECT_EQ(empty.find("inf"), std::string::npos);
}

TEST(LearningCurveTest, OnePointIsACircle) {
  const std::string one = DrawLearningCurve("one", {Result(1)});
  std::size_t circles = 0;
  for (std::size_t at = 0; (at = one.find("<circle", at)) != std::string::npos; ++at) {
    ++circles;
  }
  EXPECT_EQ(circles, 4u);
  EXPECT_THAT(one, testing::Not(HasSubstr("<polyline")));
  EXPECT_THAT(DrawLearningCurve("two", {Result(1), Result(2)}), testing::Not(HasSubstr("<circle")));
}

TEST(LearningCurveTest, StaysSmallForManyEpochs) {
  std::vector<EpochResult> results;
  for (DataEpoch epoch = 1; epoch <= 100'000; ++epoch) {
    results.push_back(Result(epoch));
  }
  EXPECT_LT(DrawLearningCurve("long", results).size(), 100'000u);
}

TEST(LearningCurveTest, WhatWasUndoneIsDotsBesideTheLine) {
  EpochResult diverged = Result(3);
  diverged.validation_loss = 1e30;
  EpochResult infinite = Result(4);
  infinite.validation_loss = std::numeric_limits<double>::infinity();
  EpochResult again = Result(2);
  again.attempt = 2;
  const std::string once = DrawLearningCurve("job", {Result(1), again});
  EXPECT_THAT(once, testing::Not(HasSubstr("class=\"undone\"")));
  const std::string svg =
      DrawLearningCurve("job", {Result(1), Result(2), diverged, infinite, again});
  EXPECT_THAT(svg, HasSubstr("class=\"undone\""));
  EXPECT_THAT(svg, HasSubstr("dots: undone"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("e+")));
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace adamant::local
