#include "operator/local/state/mode_change.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "operator/local/state/resumption.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::local {
namespace {

class ModeChangeTest : public testing::Test {
 protected:
  ModeChangeTest() {
    std::filesystem::remove_all(paths_.root);
    std::filesystem::create_directories(paths_.root);
  }
  ~ModeChangeTest() override { std::filesystem::remove_all(paths_.root); }

  static job::ParseResult With(const std::string& persistence) {
    return job::ParseJob(R"(
apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example}
spec:
  model: {reference: adam-mnist}
  data:
    train: {digits: {seed: 1, examples: 100}}
    validation: {digits: {seed: 2, examples: 100}}
  distribution: {parameterServers: {persistence: )" +
                             persistence + "}}\n",
                         "job.yaml");
  }

  const RunPaths paths_{std::filesystem::path(testing::TempDir()) /
                        testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(ModeChangeTest, NoneAmongWhatBelongsToAnotherModeIsTheReason) {
  const job::ParseResult edited = With("{mode: None, flushInterval: 1s}");
  ASSERT_EQ(edited.job, nullptr);
  ASSERT_NE(edited.draft, nullptr);
  EXPECT_EQ(ModeRefusal(*edited.draft, paths_), "") << "nothing was started here";
  ASSERT_TRUE(StoreStart(*With("{mode: Delayed, flushInterval: 1s}").job, paths_).ok());
  EXPECT_EQ(ModeRefusal(*edited.draft, paths_),
            "spec.distribution.parameterServers.persistence.mode: Delayed -> None (with None, "
            "checkpoints alone are stored)");
  EXPECT_EQ(ModeRefusal(*With("{mode: Wal}").job, paths_), "");
}

}  // namespace
}  // namespace adamant::local
