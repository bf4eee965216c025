#include "operator/local/state/old_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "operator/local/history/record.h"
#include "operator/local/run_folder/checkpoint_file.h"

namespace adamant::local {
namespace {

using controller::EpochResult;
using testing::HasSubstr;

class OldStateTest : public testing::Test {
 protected:
  OldStateTest() {
    std::filesystem::remove_all(paths_.root);
    std::filesystem::create_directories(paths_.root);
    state_.job_uid = 5;
    state_.last_snapshot = 7;
  }
  ~OldStateTest() override { std::filesystem::remove_all(paths_.root); }

  const RunPaths paths_{std::filesystem::path(testing::TempDir()) /
                        testing::UnitTest::GetInstance()->current_test_info()->name()};
  controller::JobState state_;
};

TEST_F(OldStateTest, ARunOfItsTimeIsNotNewer) {
  EXPECT_EQ(OlderThanRun(paths_, state_, {}), "");
  ASSERT_TRUE(
      WriteCheckpointManifest(paths_, {.job_uid = 5, .checkpoint = {.snapshot = 7}}, 0).ok());
  EXPECT_EQ(OlderThanRun(paths_, state_, {}), "");
}

TEST_F(OldStateTest, CheckpointsThatItHasNotGivenOutAreNewer) {
  ASSERT_TRUE(
      WriteCheckpointManifest(paths_, {.job_uid = 5, .checkpoint = {.snapshot = 8}}, 0).ok());
  EXPECT_EQ(OlderThanRun(paths_, state_, {}),
            paths_.checkpoints().string() +
                " has checkpoint 8, and the controller's state knows of none beyond 7");
  state_.job_uid = 6;
  EXPECT_EQ(OlderThanRun(paths_, state_, {}), "") << "of another job, which is said elsewhere";
}

TEST_F(OldStateTest, RowsOfLaterEpochsAreNewer) {
  const EpochResult first{.epoch = 1};
  const EpochResult second{.epoch = 2};
  std::ofstream(paths_.metrics()) << MetricsCsvHeader() << MetricsCsvRow(first)
                                  << MetricsCsvRow(second);
  EXPECT_THAT(OlderThanRun(paths_, state_, {first}), HasSubstr("has 1 row that the controller's"));
  EXPECT_EQ(OlderThanRun(paths_, state_, {first, second}), "");
}

TEST_F(OldStateTest, ACheckpointIsOnTheDisksOfServersOrNowhere) {
  EXPECT_TRUE(CheckDisksAreThere(paths_, state_).ok()) << "no checkpoint was taken";
  state_.checkpoint.buckets = {{.slot = 0}, {.slot = 1}};
  EXPECT_THAT(std::string(CheckDisksAreThere(paths_, state_).message()),
              testing::StartsWith(paths_.data().string() + ": is empty or gone"));
  std::filesystem::create_directories(paths_.store_of(1));
  EXPECT_TRUE(CheckDisksAreThere(paths_, state_).ok());
}

}  // namespace
}  // namespace adamant::local
