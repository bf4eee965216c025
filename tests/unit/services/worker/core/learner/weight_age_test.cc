#include "services/worker/core/learner/weight_age.h"

#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

constexpr std::uint64_t kBatchSize = 4;
constexpr std::uint64_t kFirst = 32 * kBatchSize;

TEST(WeightAgeTest, AloneTheyNeverAre) {
  const WeightAge age(kBatchSize);
  EXPECT_FALSE(age.Outdated(100 * kFirst));
}

TEST(WeightAgeTest, BeforeTheFirstBatchLessIsBorneThanBetweenTwo) {
  WeightAge age(kBatchSize);
  age.SetWorkers(2);
  EXPECT_FALSE(age.Outdated(kFirst - 1));
  EXPECT_TRUE(age.Outdated(kFirst));
  age.OnBatch(kFirst);
  EXPECT_FALSE(age.Outdated(kFirst + 4 * kFirst - 1));
  EXPECT_TRUE(age.Outdated(kFirst + 4 * kFirst));
  EXPECT_FALSE(age.Outdated(1)) << "a batch that was dispatched before";
}

}  // namespace
}  // namespace adamant::worker
