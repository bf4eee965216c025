#include "operator/kube/storage/epoch_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "operator/kube/storage/epoch_objects.h"

namespace adamant::kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class EpochFilesTest : public testing::Test {
 protected:
  EpochFilesTest() { std::filesystem::create_directories(folder_); }
  ~EpochFilesTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  void WriteResult(const std::string& digits, DataEpoch epoch, std::uint64_t attempt = 1) const {
    Write(kEpochEntryPrefix + digits,
          Encode(controller::EpochResult{.epoch = epoch, .attempt = attempt}));
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("epoch_files_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

auto Epoch(DataEpoch epoch) { return testing::Field(&controller::EpochResult::epoch, epoch); }

TEST_F(EpochFilesTest, ResultsComeInTheOrderOfTheirEpochs) {
  WriteResult("00000000000000000010", 10);
  WriteResult("00000000000000000009", 9);
  WriteResult("00000000000000000101", 101);
  Write("job.json", "{}");
  const EpochFiles files = ReadEpochFiles(folder_);
  EXPECT_THAT(files.results, ElementsAre(Epoch(9), Epoch(10), Epoch(101)));
  EXPECT_THAT(files.problems, IsEmpty());
}

TEST_F(EpochFilesTest, ResultsOfLaterAttemptsComeAfterThoseThatTheyUndo) {
  WriteResult("00000000000000000001", 1);
  WriteResult("00000000000000000002", 2);
  WriteResult("00000000000000000002.2", 2, 2);
  WriteResult("00000000000000000001.10", 1, 10);
  std::string order;
  for (const controller::EpochResult& result : ReadEpochFiles(folder_).results) {
    order += std::to_string(result.attempt) + ":" + std::to_string(result.epoch) + " ";
  }
  EXPECT_EQ(order, "1:1 1:2 2:2 10:1 ");
}

TEST_F(EpochFilesTest, WhatIsDamagedIsToldAndLeftOut) {
  WriteResult("00000000000000000001", 1);
  Write("epoch.00000000000000000002", "\xff\xff");
  Write("epoch.00000000000000000003", std::string(std::size_t{2} << 20, 'x'));
  WriteResult("00000000000000000004", 4);
  const EpochFiles files = ReadEpochFiles(folder_);
  EXPECT_THAT(files.results, ElementsAre(Epoch(1), Epoch(4)));
  EXPECT_THAT(files.problems,
              ElementsAre(StartsWith("epoch.00000000000000000002: "),
                          StartsWith("epoch.00000000000000000003: ")));
}

TEST_F(EpochFilesTest, AFolderThatIsNotThereIsToldOf) {
  const EpochFiles files = ReadEpochFiles(folder_ / "none");
  EXPECT_THAT(files.results, IsEmpty());
  EXPECT_THAT(files.problems, SizeIs(1));
}

}  // namespace
}  // namespace adamant::kube
