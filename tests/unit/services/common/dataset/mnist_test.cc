#include "services/common/dataset/mnist.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "services/common/dataset/sha256.h"
#include "tests/unit/services/common/dataset/temporary_folder.h"

namespace adamant::dataset {
namespace {

TEST(Sha256Test, MatchesPublishedExamples) {
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

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
