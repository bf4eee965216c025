#include "services/data_server/rpc/data_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/dataset/digits.h"
#include "services/common/dataset/idx.h"

namespace adamant::data_server {
namespace {

constexpr DataShape kDigits{.image = {.channels = 1, .height = 28, .width = 28}, .classes = 10};

class LoadDataTest : public testing::Test {
 protected:
  LoadDataTest() { std::filesystem::create_directories(folder_); }
  ~LoadDataTest() override { std::filesystem::remove_all(folder_); }

  // Digits in files; the source's paths are relative to folder_.
  v1::DataSource WriteFiles() {
    const dataset::Dataset digits = dataset::GenerateDigits({.seed = 1, .examples = 20});
    EXPECT_TRUE(dataset::WriteIdx(digits, dataset::MnistPaths(folder_, "train")).ok());
    v1::DataSource source;
    source.mutable_idx()->set_images("train-images-idx3-ubyte.gz");
    source.mutable_idx()->set_labels("train-labels-idx1-ubyte.gz");
    return source;
  }

  const std::string folder_ =
      std::filesystem::temp_directory_path() / ("adamant_load_data_" + std::to_string(getpid()));
};

TEST_F(LoadDataTest, RelativePathsStartAtTheDataRoot) {
  const v1::DataSource source = WriteFiles();
  const auto data = LoadData(source, "training", folder_, kDigits);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->size(), 20u);
}

TEST_F(LoadDataTest, DigitsAreGenerated) {
  v1::DataSource source;
  source.mutable_digits()->set_seed(5);
  source.mutable_digits()->set_examples(30);
  const auto data = LoadData(source, "training", folder_, kDigits);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->images, dataset::GenerateDigits({.seed = 5, .examples = 30}).images);
}

TEST_F(LoadDataTest, WhatARestartDoesNotCureIsInvalidArgumentOrDataLoss) {
  const v1::DataSource source = WriteFiles();
  DataShape other = kDigits;
  other.image.channels = 3;
  const absl::Status shape = LoadData(source, "training", folder_, other).status();
  EXPECT_EQ(shape.message(),
            "the training data: expected images of 3 x 28 x 28 (the net's input), found 1 x 28 x "
            "28");
  EXPECT_TRUE(absl::IsInvalidArgument(shape));
  const absl::Status missing = LoadData(source, "training", "/nowhere", kDigits).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  EXPECT_NE(missing.message().find("/nowhere/train-images"), std::string::npos) << missing;
  std::filesystem::resize_file(folder_ + "/train-images-idx3-ubyte.gz", 100);
  EXPECT_TRUE(absl::IsDataLoss(LoadData(source, "training", folder_, kDigits).status()));
}

}  // namespace
}  // namespace adamant::data_server
