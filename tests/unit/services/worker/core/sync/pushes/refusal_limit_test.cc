#include "services/worker/core/sync/pushes/refusal_limit.h"

#include <gtest/gtest.h>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

class RefusalLimitTest : public testing::Test {
 protected:
  /// As many refusals in a row as are borne.
  void RefuseNine() {
    for (int i = 0; i < 9; ++i) {
      EXPECT_TRUE(refusals_.OnRefused(nullptr, 0).ok());
    }
  }

  LoneLearner lone_{{}};
  RefusalLimit refusals_{lone_.plan, lone_.layout};
};

TEST_F(RefusalLimitTest, TheTenthInARowEndsTraining) {
  RefuseNine();
  EXPECT_FALSE(refusals_.reached());
  const absl::Status status = refusals_.OnRefused(&lone_.plan.pushed.front(), 0);
  EXPECT_TRUE(refusals_.reached());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "training diverged: 10 updates in a row held NaN or infinity, the last in layer fc1 at "
            "learning rate 0.1");
}

TEST_F(RefusalLimitTest, ALossAloneNamesNoLayer) {
  RefuseNine();
  EXPECT_EQ(refusals_.OnRefused(nullptr, 0).message(),
            "training diverged: 10 updates in a row held NaN or infinity, the last at learning "
            "rate 0.1");
}

TEST_F(RefusalLimitTest, APushThatIsLearnedBeginsTheRowAnew) {
  RefuseNine();
  refusals_.OnAcknowledged();
  RefuseNine();
  EXPECT_FALSE(refusals_.reached());
}

}  // namespace
}  // namespace adamant::worker
