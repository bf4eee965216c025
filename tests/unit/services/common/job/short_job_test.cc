#include "services/common/job/short_job.h"

#include <gtest/gtest.h>

#include <limits>

#include "proto/adamant/v1/job.pb.h"

namespace adamant::job {
namespace {

TEST(ShortJobTest, HasAtMost2000Batches) {
  EXPECT_TRUE(IsShort(1, 64'000, 32));
  EXPECT_FALSE(IsShort(1, 64'001, 32)) << "the last batch of an epoch may be smaller";
  EXPECT_TRUE(IsShort(10, 6'400, 32));
  EXPECT_FALSE(IsShort(11, 6'400, 32));
  EXPECT_TRUE(IsShort(2'000, 1, 32));
  EXPECT_FALSE(IsShort(2'001, 1, 32));
}

TEST(ShortJobTest, CountsWhatAnEpochMayEndWith) {
  v1::TrainingJob job;
  job.mutable_spec()->mutable_run_policy()->set_epochs(2);
  job.mutable_spec()->mutable_data()->set_batch_size(32);
  job.mutable_spec()->mutable_run_policy()->set_epoch_completion(1);
  EXPECT_FALSE(IsShort(job, 64'000));
  job.mutable_spec()->mutable_run_policy()->set_epoch_completion(0.5);
  EXPECT_TRUE(IsShort(job, 64'000));
  EXPECT_FALSE(IsShort(job, 64'001));
}

TEST(ShortJobTest, OfUnknownLengthIsNot) { EXPECT_FALSE(IsShort(1, 0, 32)); }

TEST(ShortJobTest, MayHaveAnyNumbers) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(IsShort(kMost, kMost, 1));
  EXPECT_TRUE(IsShort(1, kMost, kMost));
}

}  // namespace
}  // namespace adamant::job
