#include "services/data_server/rpc/data_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/sha256.h"
#include "services/common/base/system/files.h"
#include "services/common/dataset/digits.h"
#include "services/common/dataset/idx.h"
#include "services/common/service/service.h"
#include "tests/fakes/kube/scripted_api_server.h"

namespace adamant::data_server {
namespace {

namespace fs = std::filesystem;

using fakes::Reply;
using fakes::ScriptedApiServer;
using testing::HasSubstr;
using testing::StartsWith;

constexpr DataShape kDigits{.image = {.channels = 1, .height = 28, .width = 28}, .classes = 10};

class Link final : public service::ControllerLink {
 public:
  void Send(const protocol::MemberMessage& message) override {
    const auto& loading = std::get<protocol::Loading>(message);
    told.push_back(loading.what);
    fails.push_back(loading.fails);
    end = end || (!end_when_told.empty() && told.back().find(end_when_told) != std::string::npos);
  }
  void Fail(const absl::Status& /*reason*/, bool /*fatal*/) override {}
  void FailDiverged(const absl::Status& /*reason*/) override {}
  [[nodiscard]] bool stopping() const override { return end; }

  std::vector<std::string> told;
  std::vector<bool> fails;    // by what was told
  std::string end_when_told;  // part of what is told; empty: nothing
  bool end = false;
};

class LoadDataTest : public testing::Test {
 protected:
  LoadDataTest() { fs::create_directories(folder_ / "train"); }
  ~LoadDataTest() override { fs::remove_all(folder_); }

  // Digits in files of `folder`; the source's paths are relative to it.
  static v1::DataSource WriteFiles(const fs::path& folder) {
    const dataset::Dataset digits = dataset::GenerateDigits({.seed = 1, .examples = 20});
    EXPECT_TRUE(dataset::WriteIdx(digits, dataset::MnistPaths(folder, "train")).ok());
    v1::DataSource source;
    source.mutable_idx()->set_images("train-images-idx3-ubyte.gz");
    source.mutable_idx()->set_labels("train-labels-idx1-ubyte.gz");
    return source;
  }

  // A source whose files are on a claim, as it is mounted.
  [[nodiscard]] v1::DataSource WriteClaim() const {
    v1::DataSource source = WriteFiles(folder_ / "train");
    source.mutable_idx()->set_claim("mnist");
    return source;
  }

  // A source whose files a server has.
  [[nodiscard]] v1::DataSource Serve(ScriptedApiServer& server) const {
    const v1::DataSource files = WriteFiles(folder_);
    v1::DataSource source;
    const auto add = [&](const std::string& file, v1::Download& download) {
      const std::string content = ReadFile(folder_ / file, 1 << 20).value();
      server.Always("GET /" + file, Reply::Json(200, content));
      download.set_url(server.url() + "/" + file);
      download.set_sha256(Sha256(content));
    };
    add(files.idx().images(), *source.mutable_download()->mutable_images());
    add(files.idx().labels(), *source.mutable_download()->mutable_labels());
    return source;
  }

  absl::StatusOr<LoadedData> Load(const v1::DataSource& source, const DataShape& shape = kDigits) {
    return LoadData(
        source, "train", {.data_root = folder_, .fetched = folder_ / "fetched"}, shape, link_);
  }

  static std::string MessageOf(const absl::StatusOr<LoadedData>& data) {
    return std::string(data.status().message());
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("adamant_load_data_" + std::to_string(getpid()));
  Link link_;
};

TEST_F(LoadDataTest, RelativePathsStartAtTheDataRoot) {
  const auto data = Load(WriteFiles(folder_));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->set->size(), 20u);
}

TEST_F(LoadDataTest, ImagesOfPlainFilesAreReadAsTheyAreNeeded) {
  v1::DataSource source = WriteFiles(folder_);
  EXPECT_FALSE(Load(source)->fetch) << "a gzip stream is read front to back";
  const dataset::Dataset digits = dataset::GenerateDigits({.seed = 1, .examples = 20});
  std::string plain("\0\0\x08\3\0\0\0\x14\0\0\0\x1c\0\0\0\x1c", 16);
  plain.append(digits.images.begin(), digits.images.end());
  source.mutable_idx()->set_images("images");
  ASSERT_TRUE(WriteFile(folder_ / "images", plain).ok());
  const auto data = Load(source);
  ASSERT_TRUE(data.ok()) << data.status();
  for (std::uint64_t i = 20; i-- > 0;) {
    data->fetch(i);
    EXPECT_TRUE(std::ranges::equal(data->set->image(i), digits.image(i))) << i;
  }
}

TEST_F(LoadDataTest, DigitsAreGenerated) {
  v1::DataSource source;
  source.mutable_digits()->set_seed(5);
  source.mutable_digits()->set_examples(30);
  const auto data = Load(source);
  ASSERT_TRUE(data.ok()) << data.status();
  for (std::uint64_t i = 0; i < 30; ++i) {
    data->fetch(i);
  }
  EXPECT_EQ(data->set->images, dataset::GenerateDigits({.seed = 5, .examples = 30}).images);
}

TEST_F(LoadDataTest, ProblemsAreToldAsValidateTellsThem) {
  const v1::DataSource source = WriteFiles(folder_);
  const std::string images = (folder_ / source.idx().images()).string();
  DataShape other = kDigits;
  other.image.channels = 3;
  const absl::Status shape = Load(source, other).status();
  EXPECT_TRUE(absl::IsInvalidArgument(shape));
  EXPECT_EQ(shape.message(),
            "spec.data.train.idx.images: " + images +
                " has images of 1x28x28, but the net's input is 3x28x28");
  other = kDigits;
  other.classes = 3;
  EXPECT_THAT(MessageOf(Load(source, other)),
              StartsWith("spec.data.train.idx.labels: " + folder_.string()));
  fs::resize_file(images, 100);
  EXPECT_TRUE(absl::IsDataLoss(Load(source).status()));
  fs::remove(images);
  const absl::Status missing = Load(source).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  EXPECT_EQ(missing.message(), "spec.data.train.idx.images: there is no file " + images);
}

TEST_F(LoadDataTest, PathsOnAClaimStartAtItsRoot) {
  const auto data = Load(WriteClaim());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->set->size(), 20u);
}

TEST_F(LoadDataTest, WhatIsMissingOnAClaimIsToldWithoutTheMount) {
  v1::DataSource source = WriteClaim();
  source.mutable_idx()->set_labels("nothing");
  EXPECT_EQ(Load(source).status().message(),
            "spec.data.train.idx.labels: there is no file nothing of the claim mnist");
}

TEST_F(LoadDataTest, LinksMayNotLeadOutOfAClaim) {
  v1::DataSource source = WriteClaim();
  const fs::path images = folder_ / "train" / source.idx().images();
  fs::rename(images, folder_ / "train" / "moved");
  fs::create_symlink("moved", images);
  EXPECT_TRUE(Load(source).ok()) << "a link to the same claim";
  fs::rename(folder_ / "train" / "moved", folder_ / "outside");
  fs::remove(images);
  fs::create_symlink("../outside", images);
  const absl::Status status = Load(source).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "spec.data.train.idx.images: train-images-idx3-ubyte.gz of the claim mnist leads out "
            "of the volume");
}

TEST_F(LoadDataTest, DownloadsAreFetchedOnce) {
  ScriptedApiServer server({.tls = false});
  const v1::DataSource source = Serve(server);
  const auto data = Load(source);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->set->size(), 20u);
  EXPECT_TRUE(Load(source).ok()) << "as by a process that starts again";
  EXPECT_EQ(server.requests().size(), 2u);
  ASSERT_FALSE(link_.told.empty());
  EXPECT_THAT(link_.told[0], StartsWith("fetching " + server.url()));
  EXPECT_FALSE(link_.fails[0]);
}

TEST_F(LoadDataTest, AWrongSumBlamesTheSum) {
  ScriptedApiServer server({.tls = false});
  v1::DataSource source = Serve(server);
  source.mutable_download()->mutable_labels()->set_sha256(std::string(64, '0'));
  const absl::Status status = Load(source).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()),
              StartsWith("spec.data.train.download.labels.sha256: " + server.url() +
                         "/train-labels-idx1-ubyte.gz: expected SHA-256 000"));
}

TEST_F(LoadDataTest, AFileThatTheServerDoesNotHaveBlamesTheUrl) {
  ScriptedApiServer server({.tls = false});
  v1::DataSource source = Serve(server);
  source.mutable_download()->mutable_images()->set_url(server.url() + "/nothing");
  const absl::Status status = Load(source).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "spec.data.train.download.images.url: " + server.url() +
                "/nothing: the server answers with HTTP status 404");
}

TEST_F(LoadDataTest, ProblemsOfADownloadNameItsUrl) {
  ScriptedApiServer server({.tls = false});
  const v1::DataSource source = Serve(server);
  DataShape other = kDigits;
  other.image.width = 32;
  EXPECT_EQ(Load(source, other).status().message(),
            "spec.data.train.download.images: " + source.download().images().url() +
                " has images of 1x28x28, but the net's input is 1x28x32");
}

TEST_F(LoadDataTest, AProcessThatIsToEndFetchesNoMore) {
  ScriptedApiServer server({.tls = false});
  const v1::DataSource source = Serve(server);
  link_.end = true;
  EXPECT_TRUE(absl::IsCancelled(Load(source).status()));
}

TEST_F(LoadDataTest, AProcessThatIsToEndDoesNotWaitForAServer) {
  ScriptedApiServer server({.tls = false});
  const v1::DataSource source = Serve(server);
  server.ForgetRules();
  server.Always("GET ", Reply::Json(503, "", {{"Retry-After", "300"}}));
  link_.end_when_told = "to be tried again";
  EXPECT_TRUE(absl::IsCancelled(Load(source).status()));
  EXPECT_THAT(link_.told.back(), HasSubstr("HTTP status 503"));
  EXPECT_TRUE(link_.fails.back());
}

}  // namespace
}  // namespace adamant::data_server
