#include <gtest/gtest.h>

#include "services/worker/core/base/update_plan.h"
#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

/// One fully connected layer of 100 inputs and 200 outputs.
class PlanTest : public testing::Test {
 protected:
  static model::Graph Graph() {
    model::Net net;
    net.input = {1, 10, 10};
    net.classes = 200;
    net.layers = {{.name = "fc",
                   .kind = model::LayerKind::kFullyConnected,
                   .inputs = {"input"},
                   .channels = 200}};
    return *model::BuildGraph(net);
  }

  absl::StatusOr<UpdatePlan> Make(UpdateProtocol protocol,
                                  std::uint64_t rows,
                                  OptimiserLocation location) {
    options_.optimisers =
        std::vector<ParameterOptimiser>(2, {.location = location, .rate = rate_, .schedule = {}});
    options_.protocols = std::vector(2, protocol);
    options_.push_every = rows;
    return UpdatePlan::Make(graph_, layout_, options_);
  }

  bool UsesActivations(UpdateProtocol protocol,
                       std::uint64_t rows,
                       OptimiserLocation location = OptimiserLocation::kServer) {
    const auto plan = Make(protocol, rows, location);
    return plan.ok() && plan->tensors[0].activations;
  }

  const model::Graph graph_ = Graph();
  const ShardLayout layout_{graph_.parameters, 4};
  UpdatePlanOptions options_{
      .optimisers = {}, .protocols = {}, .servers = 3, .max_operand_bytes = 1 << 20};
  double rate_ = 0.1;
};

TEST_F(PlanTest, AutoTakesWhateverNeedsFewerBytes) {
  // k (M + N) < M N for k = 66: 19800 < 20000, not for k = 67: 20100.
  EXPECT_TRUE(UsesActivations(UpdateProtocol::kAuto, 66));
  EXPECT_FALSE(UsesActivations(UpdateProtocol::kAuto, 67));
  EXPECT_FALSE(UsesActivations(UpdateProtocol::kAuto, 66, OptimiserLocation::kWorker));
  EXPECT_FALSE(UsesActivations(UpdateProtocol::kGradients, 1));
}

TEST_F(PlanTest, ActivationsCanBeForcedWhereTheServerOptimises) {
  EXPECT_TRUE(UsesActivations(UpdateProtocol::kActivations, 500));
  EXPECT_EQ(Make(UpdateProtocol::kActivations, 1, OptimiserLocation::kWorker).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Make(UpdateProtocol::kActivations, 1000, OptimiserLocation::kServer).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(PlanTest, SumsOfRowsFitAMessage) {
  options_.threads = 8;
  // 200 rows x 300 x 4 bytes = 240,000: four of them fit into a mebibyte.
  const auto plan = Make(UpdateProtocol::kActivations, 200, OptimiserLocation::kServer);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->max_summed, 4u);
  EXPECT_EQ(plan->pushed[0].operand_bytes, 960000u);
  EXPECT_EQ(plan->pushed[0].bytes, 0u);
  EXPECT_EQ(plan->pushed[1].bytes, 800u);
}

TEST_F(PlanTest, LayersWithRateZeroAreNeitherChangedNorPushed) {
  rate_ = 0;
  const auto plan = Make(UpdateProtocol::kAuto, 1, OptimiserLocation::kServer);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->pushed.empty());
  EXPECT_FALSE(plan->tensors[0].trained);
}

TEST_F(PlanTest, EveryParameterLiesInItsTensor) {
  const auto plan = Make(UpdateProtocol::kGradients, 1, OptimiserLocation::kWorker);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(&plan->TensorOf(0), &plan->tensors[0]);
  EXPECT_EQ(&plan->TensorOf(19999), &plan->tensors[0]);
  EXPECT_EQ(&plan->TensorOf(20000), &plan->tensors[1]);
  EXPECT_EQ(&plan->TensorOf(20199), &plan->tensors[1]);
}

}  // namespace
}  // namespace adamant::worker
