#include "operator/local/history/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "operator/local/history/learning_curve.h"
#include "operator/local/history/record.h"
#include "operator/local/run_folder/run_paths.h"
#include "services/common/base/system/files.h"
#include "tests/unit/operator/local/full_disk.h"

namespace adamant::local {
namespace {

using controller::EpochResult;
using testing::HasSubstr;

EpochResult Result(DataEpoch epoch) {
  return {.epoch = epoch, .counted = 1000, .seconds = 2, .validated = 100, .top1 = 0.9};
}

/// A run whose results are those of the epochs that a test has ended.
class RecorderTest : public testing::Test {
 protected:
  RecorderTest() { EXPECT_TRUE(CreateRunFolder(paths_, "").ok()); }
  ~RecorderTest() override { std::filesystem::remove_all(paths_.root); }

  Recorder Open(std::vector<EpochResult> results = {}) {
    auto recorder = Recorder::Open(paths_, "job", std::move(results));
    EXPECT_TRUE(recorder.ok()) << recorder.status();
    return *std::move(recorder);
  }

  // What metrics.csv should be after these epochs.
  static std::string Csv(const std::vector<std::uint64_t>& epochs) {
    std::string csv = MetricsCsvHeader();
    for (const DataEpoch epoch : epochs) {
      csv += MetricsCsvRow(Result(epoch));
    }
    return csv;
  }

  [[nodiscard]] std::string Metrics() const { return ReadFile(paths_.metrics(), 10'000).value(); }

  const RunPaths paths_{std::filesystem::temp_directory_path() /
                        ("adamant_recorder_" + std::to_string(getpid()))};
};

TEST_F(RecorderTest, RowsThatCouldNotBeWrittenComeWithTheNextEpoch) {
  Recorder recorder = Open();
  EXPECT_TRUE(recorder.Epoch(Result(1)).ok());
  {
    const FullDisk full;
    EXPECT_THAT(std::string(recorder.Epoch(Result(2)).message()),
                HasSubstr("cannot write " + paths_.metrics().string()));
    EXPECT_FALSE(recorder.Epoch(Result(3)).ok());
  }
  EXPECT_EQ(Metrics(), Csv({1}));
  EXPECT_TRUE(recorder.Epoch(Result(4)).ok());
  EXPECT_TRUE(recorder.Epoch(Result(5)).ok());
  EXPECT_EQ(Metrics(), Csv({1, 2, 3, 4, 5}));
}

TEST_F(RecorderTest, TheEndWritesWhatCouldNotBeWrittenOrSaysThatItIsMissing) {
  Recorder recorder = Open();
  {
    const FullDisk full;
    EXPECT_FALSE(recorder.Epoch(Result(1)).ok());
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(std::string(recorder.Finish().message()), HasSubstr(paths_.metrics().string()));
    }
  }
  EXPECT_TRUE(recorder.Finish().ok());
  EXPECT_EQ(Metrics(), Csv({1}));
  EXPECT_EQ(ReadFile(paths_.curve(), 100'000).value(), DrawLearningCurve("job", {Result(1)}));
}

TEST_F(RecorderTest, RowsDoNotWaitForEvents) {
  std::filesystem::create_symlink("/dev/full", paths_.events());
  Recorder recorder = Open();
  EXPECT_THAT(std::string(recorder.Epoch(Result(1)).message()),
              HasSubstr("cannot write " + paths_.events().string()));
  EXPECT_EQ(Metrics(), Csv({1}));
}

TEST_F(RecorderTest, WhereTheFileIsNotInItsPlaceItIsWrittenAnew) {
  const auto take_away = [&] { std::filesystem::remove(paths_.metrics()); };
  Recorder recorder = Open();
  EXPECT_TRUE(recorder.Epoch(Result(1)).ok());
  take_away();
  ASSERT_EQ(mkfifo(paths_.metrics().c_str(), 0644), 0);
  EXPECT_TRUE(recorder.Epoch(Result(2)).ok());
  EXPECT_EQ(Metrics(), Csv({1, 2}));
  take_away();
  EXPECT_TRUE(recorder.Finish().ok());
  EXPECT_EQ(Metrics(), Csv({1, 2}));
  take_away();
  std::filesystem::create_directory(paths_.metrics());
  EXPECT_THAT(std::string(recorder.Finish().message()),
              HasSubstr(paths_.metrics().string() + ": is a folder, where a file belongs"));
}

TEST_F(RecorderTest, WhatIsInThePlaceOfTheCurveKeepsNothingFromBeingRecorded) {
  std::filesystem::create_directory(paths_.curve());
  Recorder recorder = Open();
  recorder.Epoch(Result(1)).IgnoreError();  // it may try to draw, or it is too soon
  EXPECT_THAT(std::string(recorder.Finish().message()),
              HasSubstr(paths_.curve().string() + ": is a folder, where a file belongs"));
  EXPECT_EQ(Metrics(), Csv({1}));
}

TEST_F(RecorderTest, AllThatIsNoFileIsNamedAtOnceWhileItRunsAndAtTheEnd) {
  Recorder recorder = Open();
  EXPECT_TRUE(recorder.Epoch(Result(1)).ok());
  const std::vector<std::filesystem::path> files = {
      paths_.metrics(), paths_.events(), paths_.curve()};
  for (const std::filesystem::path& file : files) {
    std::filesystem::remove(file);
    std::filesystem::create_directory(file);
  }
  for (const absl::Status& status : {recorder.Epoch(Result(2)), recorder.Finish()}) {
    for (const std::filesystem::path& file : files) {
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(file.string() + ": is a folder, where a file belongs"));
    }
  }
  for (const std::filesystem::path& file : files) {
    std::filesystem::remove(file);
  }
  EXPECT_TRUE(recorder.Finish().ok());
  EXPECT_EQ(Metrics(), Csv({1, 2}));
  EXPECT_TRUE(std::filesystem::is_regular_file(paths_.events()));
  EXPECT_TRUE(std::filesystem::is_regular_file(paths_.curve()));
}

TEST_F(RecorderTest, EventsThatAreRemovedGoOnInAnotherFile) {
  Recorder recorder = Open();
  EXPECT_TRUE(recorder.Epoch(Result(1)).ok());
  std::filesystem::remove(paths_.events());
  ASSERT_EQ(mkfifo(paths_.events().c_str(), 0644), 0);
  EXPECT_THAT(std::string(recorder.Epoch(Result(2)).message()),
              HasSubstr(paths_.events().string() + ": is a FIFO, where a file belongs"));
  std::filesystem::remove(paths_.events());
  EXPECT_TRUE(recorder.Epoch(Result(3)).ok());
  EXPECT_THAT(ReadFile(paths_.events(), 10'000).value(), HasSubstr("\"epoch\":3"));
}

TEST_F(RecorderTest, ARowThatReplacesOneOfAnEarlierStartIsNotLostEither) {
  EXPECT_TRUE(Open().Epoch(Result(1)).ok());
  Recorder recorder = Open();
  EpochResult again = Result(1);
  again.counted = 777;
  {
    const FullDisk full;
    EXPECT_FALSE(recorder.Epoch(again).ok());
  }
  EXPECT_EQ(Metrics(), Csv({1}));
  EXPECT_TRUE(recorder.Finish().ok());
  EXPECT_EQ(Metrics(), MetricsCsvHeader() + MetricsCsvRow(again));
}

TEST_F(RecorderTest, TheRecorderKeepsAllAttemptsInTheOrderOfTime) {
  EpochResult again = Result(1);
  again.attempt = 2;
  auto recorder = Recorder::Open(paths_, "job", {Result(1), again, Result(2)});
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  EXPECT_EQ(ReadFile(paths_.metrics(), 10'000).value(),
            MetricsCsvHeader() + MetricsCsvRow(Result(1)) + MetricsCsvRow(Result(2)) +
                MetricsCsvRow(again));
  EXPECT_EQ(recorder->results().back().attempt, 2u);
}

TEST_F(RecorderTest, TheRecorderGoesOnWhereTheStoredResultsEnd) {
  {
    auto recorder = Recorder::Open(paths_, "job", {});
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    EXPECT_TRUE(recorder->Epoch(Result(1)).ok());
    EXPECT_TRUE(recorder->Epoch(Result(2)).ok());
  }
  // Epoch 2 was recorded but never stored: it will be evaluated again.
  auto recorder = Recorder::Open(paths_, "job", {Result(1)});
  ASSERT_TRUE(recorder.ok());
  EXPECT_TRUE(recorder->Epoch(Result(2)).ok());
  EXPECT_TRUE(recorder->Finish().ok());
  EXPECT_EQ(ReadFile(paths_.metrics(), 10'000).value(),
            MetricsCsvHeader() + MetricsCsvRow(Result(1)) + MetricsCsvRow(Result(2)));
  EXPECT_THAT(ReadFile(paths_.curve(), 100'000).value(), HasSubstr("</svg>"));
}

TEST_F(RecorderTest, RowsThatTheStoredResultsLackAreKeptUntilTheirEpochsHaveEndedAgain) {
  {
    auto recorder = Recorder::Open(paths_, "job", {Result(1)});
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    EXPECT_EQ(recorder->TakeAlarm(), "");
    EXPECT_TRUE(recorder->Epoch(Result(2)).ok());
    EXPECT_TRUE(recorder->Epoch(Result(3)).ok());
  }
  EXPECT_THAT(Recorder::CheckRows(paths_, {Result(1)}), HasSubstr("has 2 rows that the"));
  EXPECT_EQ(Recorder::CheckRows(paths_, {Result(1), Result(2), Result(3)}), "");
  EpochResult again = Result(2);
  again.counted = 777;
  for (int start = 0; start < 2; ++start) {
    auto recorder = Recorder::Open(paths_, "job", {Result(1)});
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    EXPECT_EQ(ReadFile(paths_.metrics(), 10'000).value(),
              MetricsCsvHeader() + MetricsCsvRow(Result(1)) + MetricsCsvRow(Result(2)) +
                  MetricsCsvRow(Result(3)));
    EXPECT_THAT(recorder->TakeAlarm(), HasSubstr(paths_.metrics().string() + " has 2 rows"));
    EXPECT_EQ(recorder->TakeAlarm(), "");
    if (start == 1) {
      EXPECT_TRUE(recorder->Epoch(again).ok());
    }
  }
  auto recorder = Recorder::Open(paths_, "job", {Result(1), again});
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  EXPECT_EQ(ReadFile(paths_.metrics(), 10'000).value(),
            MetricsCsvHeader() + MetricsCsvRow(Result(1)) + MetricsCsvRow(again) +
                MetricsCsvRow(Result(3)));
}

TEST_F(RecorderTest, RowsThatAreNeverTrainedAgainStayAndAreNoAlarmOnceTheJobHasGoneOn) {
  {
    auto recorder = Recorder::Open(paths_, "job", {});
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    for (const DataEpoch epoch : {1, 2, 3, 4}) {
      EXPECT_TRUE(recorder->Epoch(Result(epoch)).ok());
    }
  }
  // The results of epochs 2 and 3 are lost, and the job has gone on with epoch 4.
  const std::vector<EpochResult> stored = {Result(1), Result(4)};
  EXPECT_EQ(Recorder::CheckRows(paths_, stored), "");
  for (int start = 0; start < 2; ++start) {
    auto recorder = Recorder::Open(paths_, "job", stored);
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    EXPECT_EQ(recorder->TakeAlarm(), "");
    const std::string csv = ReadFile(paths_.metrics(), 10'000).value();
    for (const DataEpoch epoch : {1, 2, 3, 4}) {
      EXPECT_THAT(csv, HasSubstr(MetricsCsvRow(Result(epoch))));
    }
  }
}

TEST_F(RecorderTest, DamageOfARowIsMadeGoodAndNoRowOfItsOwn) {
  const std::string whole =
      MetricsCsvHeader() + MetricsCsvRow(Result(1)) + MetricsCsvRow(Result(2));
  std::string other_epoch = whole;
  other_epoch[whole.rfind("2,1000")] = '6';
  for (const std::string& damaged :
       {other_epoch, whole.substr(0, whole.size() - 9), whole.substr(40), std::string()}) {
    std::ofstream(paths_.metrics()) << damaged;
    auto recorder = Recorder::Open(paths_, "job", {Result(1), Result(2)});
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    EXPECT_EQ(ReadFile(paths_.metrics(), 10'000).value(), whole);
    EXPECT_EQ(recorder->TakeAlarm(), "");
  }
}

}  // namespace
}  // namespace adamant::local
