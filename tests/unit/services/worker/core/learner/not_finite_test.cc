// Numbers that no weight may become.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

TEST(NotFiniteTest, AnUpdateThatIsNotFiniteIsDroppedWholeAndTrainingGoesOnFromFreshWeights) {
  Rig rig({});
  rig.Begin();
  const std::vector<float> initial = rig.servers.weights();
  rig.learner.weights()[3] = std::numeric_limits<float>::quiet_NaN();
  for (int i = 0; i < 4; ++i) {
    rig.PutBatch();
  }
  rig.Settle();
  EXPECT_EQ(rig.synchroniser.statistics().pushes_refused, 1u);
  EXPECT_EQ(rig.servers.weights(), initial);
  EXPECT_EQ(rig.LocalWeights(), initial);
  EXPECT_EQ(rig.handed_back.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    rig.PutBatch();
  }
  rig.Settle();
  EXPECT_EQ(rig.acknowledged.size(), 4u);
  EXPECT_NE(rig.servers.weights(), initial);
  const ThreadStatistics& statistics = rig.learner.channel(0).statistics();
  EXPECT_EQ(statistics.steps.load(), 8u);
  EXPECT_EQ(statistics.examples.load(), 15u) << "those of the batches with a loss";
  EXPECT_GT(statistics.loss_sum.load(), 0);
  EXPECT_TRUE(std::isfinite(statistics.loss_sum.load()));
}

TEST(NotFiniteTest, AnInfiniteLossIsRefusedThoughAllGradientsAreNumbers) {
  Rig rig({.location = OptimiserLocation::kServer});
  rig.Begin();
  const std::vector<float> initial = rig.servers.weights();
  rig.learner.weights()[rig.layout.OffsetOf(3)] = -std::numeric_limits<float>::infinity();
  for (int i = 0; i < 4; ++i) {
    rig.PutBatch();
  }
  rig.Settle();
  EXPECT_EQ(rig.synchroniser.statistics().pushes_refused, 1u);
  EXPECT_EQ(rig.servers.weights(), initial);
  EXPECT_EQ(rig.LocalWeights(), initial);
  EXPECT_EQ(rig.handed_back.size(), 4u);
}

// A server would refuse it alone, while the others take their shards.
TEST(NotFiniteTest, RowsWhoseProductMayOverflowAreNotFiniteWhicheverThreadHasThem) {
  Rig rig({.location = OptimiserLocation::kServer, .protocol = UpdateProtocol::kActivations});
  const UpdatePlan& plan = rig.learner.plan();
  Accumulator one(plan, rig.layout.shards().size(), 4);
  Accumulator other(plan, rig.layout.shards().size(), 4);
  Accumulator* const parts[] = {&one, &other};
  const auto tensor = static_cast<std::size_t>(
      std::ranges::find(plan.tensors, true, &TensorPlan::activations) - plan.tensors.begin());
  ASSERT_LT(tensor, plan.tensors.size());
  for (Accumulator* const part : parts) {
    std::ranges::fill(part->values.span(), 0.0f);
    std::ranges::fill(part->rows[tensor].activations.span(), 1.0f);
    std::ranges::fill(part->rows[tensor].errors.span(), 1.0f);
    part->filled_rows = 1;
  }
  one.rows[tensor].activations.span()[0] = 1e20f;
  EXPECT_EQ(FindNotFinite(plan, rig.layout, parts), nullptr);
  other.rows[tensor].errors.span()[0] = 1e20f;
  const PushedShard* const found = FindNotFinite(plan, rig.layout, parts);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(rig.layout.shards()[found->shard].tensor, tensor);
}

TEST(NotFiniteTest, TenRefusalsInARowEndTheJobNamingLayerAndRate) {
  Rig rig({});
  rig.Begin();
  absl::Status status;
  for (int refusal = 1; refusal <= 10; ++refusal) {
    ASSERT_TRUE(status.ok()) << refusal << ": " << status;
    ASSERT_FALSE(rig.synchroniser.diverged());
    rig.learner.weights()[0] = std::numeric_limits<float>::infinity();
    for (int i = 0; i < 4; ++i) {
      rig.PutBatch();
      rig.threads[0]->Advance();
    }
    status = rig.Pump();
    if (refusal < 10) {
      rig.Settle();
    }
  }
  EXPECT_TRUE(rig.synchroniser.diverged());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("layer fc1 at learning rate 0.1"), std::string::npos) << status;
}

}  // namespace
}  // namespace adamant::worker
