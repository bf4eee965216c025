#include "services/common/dataset/mnist.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "services/common/base/sha256.h"
#include "tests/unit/services/common/dataset/temporary_folder.h"

namespace adamant::dataset {
namespace {

TEST(FetchMnistTest, UnreachableMirrorGivesOneClearErrorAndLeavesNothing) {
  const TemporaryFolder folder;
  const absl::Status status =
      FetchMnist(folder.path(), {.mirrors = {"file://" + folder.path() + "/nowhere"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("cannot fetch file://"), std::string::npos) << status;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FetchMnistTest, WrongFileIsRefusedWithBothChecksums) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/mirror");
  (void)folder.Write("mirror/train-images-idx3-ubyte.gz", "not MNIST");
  const absl::Status status =
      FetchMnist(folder.path() + "/out", {.mirrors = {"file://" + folder.path() + "/mirror"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("expected SHA-256 440fcabf"), std::string::npos) << status;
  EXPECT_NE(status.message().find(Sha256("not MNIST")), std::string::npos) << status;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() + "/out"));
}

}  // namespace
}  // namespace adamant::dataset
