#include "services/common/dataset/lazy_idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "services/common/base/system/files.h"
#include "services/common/dataset/digits.h"

namespace adamant::dataset {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kExamples = 100;
constexpr std::uint64_t kBlock = std::uint64_t{3} * kDigitSide * kDigitSide;  // three images

std::string Idx(const std::vector<std::uint8_t>& dimensions,
                const std::vector<std::uint8_t>& elements) {
  std::string file = {'\0', '\0', '\x08', static_cast<char>(dimensions.size())};
  for (const std::uint8_t dimension : dimensions) {
    file += std::string(3, '\0') + static_cast<char>(dimension);
  }
  return file + std::string(elements.begin(), elements.end());
}

class LazyIdxTest : public testing::Test {
 protected:
  LazyIdxTest() {
    std::filesystem::create_directories(folder_);
    const std::string images = Idx({kExamples, kDigitSide, kDigitSide}, digits_.images);
    EXPECT_TRUE(WriteFile(paths_.images, images).ok());
    EXPECT_TRUE(WriteFile(paths_.labels, Idx({kExamples}, digits_.labels)).ok());
  }
  ~LazyIdxTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<LazyIdx> Open(bool reads_ahead) {
    auto lazy = LazyIdx::Open(paths_,
                              {.block_bytes = kBlock, .reads_ahead = reads_ahead},
                              [this](const absl::Status& status) { failure_ = status; });
    EXPECT_TRUE(lazy.ok()) << lazy.status();
    return *std::move(lazy);
  }

  const Dataset digits_ = GenerateDigits({.seed = 7, .examples = kExamples});
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("adamant_lazy_idx_" + std::to_string(getpid()));
  const IdxPaths paths_{.images = folder_ / "images", .labels = folder_ / "labels"};
  absl::Status failure_;
};

TEST_F(LazyIdxTest, IsTheDataSetOfReadIdx) {
  const auto lazy = Open(true);
  EXPECT_EQ(lazy->set()->labels, digits_.labels) << "from the start";
  EXPECT_EQ(lazy->set()->height, kDigitSide);
  for (std::uint64_t i = kExamples; i-- > 0;) {
    lazy->Read(i);
    EXPECT_TRUE(std::ranges::equal(lazy->set()->image(i), digits_.image(i))) << i;
  }
  EXPECT_EQ(lazy->set()->images, ReadIdx(paths_)->images);
}

TEST_F(LazyIdxTest, OneImageDoesNotWaitForTheOthers) {
  const auto lazy = Open(false);
  EXPECT_EQ(lazy->read(), 0u);
  lazy->Read(50);
  EXPECT_EQ(lazy->read(), 3u) << "those that lie beside it";
  EXPECT_TRUE(std::ranges::equal(lazy->set()->image(50), digits_.image(50)));
  lazy->Read(kExamples - 1);
  EXPECT_EQ(lazy->read(), 4u) << "the last block has one";
}

TEST_F(LazyIdxTest, TheOthersAreReadMeanwhileAndEachOnce) {
  const auto lazy = Open(true);
  {
    std::vector<std::jthread> readers;
    for (int reader = 0; reader < 3; ++reader) {
      readers.emplace_back([&lazy] {
        for (std::uint64_t i = kExamples; i-- > 0;) {
          lazy->Read(i);
        }
      });
    }
  }
  EXPECT_EQ(lazy->read(), kExamples);
}

TEST_F(LazyIdxTest, AFileThatHasBecomeShorterIsTold) {
  const auto lazy = Open(false);
  std::filesystem::resize_file(paths_.images, 1'000);
  lazy->Read(0);
  EXPECT_THAT(std::string(failure_.message()),
              HasSubstr(paths_.images + ": offset 1000: the file has become shorter"));
}

TEST_F(LazyIdxTest, WhatReadIdxRefusesIsRefusedBeforeAnImageIsRead) {
  std::filesystem::resize_file(paths_.images, 1'000);
  EXPECT_EQ(LazyIdx::Open(paths_, {}, {}).status(), ReadIdx(paths_).status());
  ASSERT_TRUE(WriteIdx(digits_, paths_).ok());
  EXPECT_TRUE(IsCompressed(paths_).value());
  EXPECT_THAT(std::string(LazyIdx::Open(paths_, {}, {}).status().message()),
              HasSubstr("is compressed"));
}

}  // namespace
}  // namespace adamant::dataset
