// A worker whose first batch comes when others have trained for long.

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

TEST(OutdatedTest, NothingIsTrainedUntilTheValuesOfNowAreThereHoweverLateTheLoopAnswers) {
  Rig rig({});
  rig.learner.weight_age().SetWorkers(2);
  rig.Begin();
  rig.next_batch = 200;
  ASSERT_TRUE(rig.PutBatch());
  const std::vector<float> before = rig.LocalWeights();
  const std::uint64_t renewed = rig.learner.commands().renewed();
  for (int turn = 0; turn < 100; ++turn) {  // the loop has no processor
    rig.threads[0]->Advance();
  }
  EXPECT_EQ(rig.learner.steps(), 0U);
  EXPECT_EQ(rig.LocalWeights(), before);
  ASSERT_TRUE(rig.Pump().ok());
  rig.Settle();
  EXPECT_EQ(rig.learner.commands().renewed(), renewed + 1);
  EXPECT_EQ(rig.learner.steps(), 1U);
  EXPECT_TRUE(rig.handed_back.empty()) << "the batch was kept";
}

}  // namespace
}  // namespace adamant::worker
