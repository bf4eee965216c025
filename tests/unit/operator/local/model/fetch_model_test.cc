#include "operator/local/model/fetch_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace adamant::local {
namespace {

using ::testing::HasSubstr;

class FetchModelTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kBuckets = 2;

  const ShardLayout layout_{std::vector<Parameter>{{.name = "w", .layer = "l", .shape = {4}}},
                            kBuckets};
};

// gRPC would write of an empty address to standard error itself.
TEST_F(FetchModelTest, AServerThatIsAwayIsNotCalled) {
  const std::vector<std::vector<std::string>> servers = {{}, {""}};
  for (const std::vector<std::string>& addresses : servers) {
    const absl::Status status =
        FetchModel({.job_uid = 7, .snapshot = 1, .servers = addresses, .holders = {0, 0}}, layout_)
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("parameter-server-0 is not there"));
  }
}

TEST_F(FetchModelTest, ASourceThatDoesNotNameEveryBucketIsRefused) {
  const ModelSource few{.job_uid = 7, .snapshot = 1, .servers = {""}, .holders = {0}};
  EXPECT_EQ(FetchModel(few, layout_).status().code(), absl::StatusCode::kDataLoss);
  ModelSource checksums = few;
  checksums.holders = {0, 0};
  checksums.checksums = {1};
  EXPECT_EQ(FetchModel(checksums, layout_).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace adamant::local
