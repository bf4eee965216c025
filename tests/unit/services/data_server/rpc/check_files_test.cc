#include "services/data_server/rpc/check_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/system/files.h"
#include "services/common/codec/work.h"
#include "services/common/service/service.h"

namespace adamant::data_server {
namespace {

namespace fs = std::filesystem;

class NoLink final : public service::ControllerLink {
 public:
  void Send(const protocol::MemberMessage& /*message*/) override {}
  void Fail(const absl::Status& /*reason*/, bool /*fatal*/) override {}
  void FailDiverged(const absl::Status& /*reason*/) override {}
  [[nodiscard]] bool stopping() const override { return false; }
};

class CheckFilesTest : public testing::Test {
 protected:
  CheckFilesTest() {
    fs::create_directories(folder_ / "validation");
    Write("images", "images");
    Write("labels", "0123456789");
    Write("validation/images", "more images");
    Write("validation/labels", "9876543210");
    v1::Data& data = *welcome_.mutable_job()->mutable_spec()->mutable_data();
    for (v1::DataSource* const source : {data.mutable_train(), data.mutable_validation()}) {
      source->mutable_idx()->set_images("images");
      source->mutable_idx()->set_labels("labels");
    }
    data.mutable_validation()->mutable_idx()->set_claim("digits");
  }
  ~CheckFilesTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    ASSERT_TRUE(WriteFile(folder_ / name, content).ok());
  }

  absl::StatusOr<std::vector<protocol::DataFile>> Check() {
    return CheckFiles(
        welcome_, {.data_root = folder_, .fetched = folder_ / "fetched"}, controller_);
  }

  // The job has begun with the files as they are.
  void Begin() {
    const auto files = Check();
    ASSERT_TRUE(files.ok()) << files.status();
    for (const protocol::DataFile& file : *files) {
      codec::Encode(file, *welcome_.add_data_files());
    }
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("adamant_check_files_" + std::to_string(getpid()));
  v1::Welcome welcome_;
  NoLink controller_;
};

TEST_F(CheckFilesTest, AllFilesAreReportedByTheirFields) {
  const auto files = Check();
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 4u);
  EXPECT_EQ(files->at(0).field, "spec.data.train.idx.images");
  EXPECT_EQ(files->at(1).field, "spec.data.train.idx.labels");
  EXPECT_EQ(files->at(2).field, "spec.data.validation.idx.images");
  EXPECT_EQ(files->at(3).field, "spec.data.validation.idx.labels");
  EXPECT_NE(files->at(0).fingerprint, files->at(2).fingerprint);
}

TEST_F(CheckFilesTest, TheSameFilesElsewhereAreTaken) {
  Begin();
  fs::rename(folder_ / "images", folder_ / "moved");
  welcome_.mutable_job()
      ->mutable_spec()
      ->mutable_data()
      ->mutable_train()
      ->mutable_idx()
      ->set_images("moved");
  EXPECT_TRUE(Check().ok());
}

TEST_F(CheckFilesTest, OneOtherLabelIsOtherDataAndNamesItsFile) {
  Begin();
  Write("labels", "0123456780");
  const absl::Status status = Check().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "spec.data.train.idx.labels: " + (folder_ / "labels").string() +
                " is not the file that the job began with: its content differs; only with that "
                "file can the job go on");
}

TEST_F(CheckFilesTest, OtherValidationDataIsRefusedToo) {
  Begin();
  Write("validation/images", "MORE images");
  EXPECT_EQ(Check().status().message(),
            "spec.data.validation.idx.images: images of the claim digits is not the file that the "
            "job began with: its content differs; only with that file can the job go on");
}

TEST_F(CheckFilesTest, WhatIsNotKnownYetIsTaken) {
  Begin();
  welcome_.mutable_data_files()->DeleteSubrange(0, 1);
  Write("images", "others");
  EXPECT_TRUE(Check().ok());
}

TEST_F(CheckFilesTest, WhatCannotBeReadIsToldByItsField) {
  fs::remove(folder_ / "validation/labels");
  EXPECT_EQ(Check().status().message(),
            "spec.data.validation.idx.labels: there is no file labels of the claim digits");
}

TEST_F(CheckFilesTest, DigitsAndDownloadsAreKnownByTheManifest) {
  v1::Data& data = *welcome_.mutable_job()->mutable_spec()->mutable_data();
  data.mutable_train()->mutable_digits()->set_examples(10);
  data.mutable_validation()->mutable_download();
  const auto files = Check();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE(files->empty());
}

}  // namespace
}  // namespace adamant::data_server
