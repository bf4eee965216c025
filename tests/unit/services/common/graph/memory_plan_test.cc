#include "services/common/graph/memory_plan.h"

#include <gtest/gtest.h>

namespace adamant::graph {
namespace {

using kernels::InPlace;
using kernels::MapLayout;
using model::LayerKind;

model::Graph Of(std::vector<model::Layer> layers) {
  auto graph = model::BuildGraph({{2, 3, 3}, 18, std::move(layers), ""});
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

model::Layer Fc(std::string name, std::string input) {
  model::Layer layer = {
      .name = std::move(name), .kind = LayerKind::kFullyConnected, .inputs = {std::move(input)}};
  layer.channels = 18;
  return layer;
}

constexpr KernelTraits kPlain = {InPlace::kNo, false};
constexpr KernelTraits kActivation = {InPlace::kOverwrites, true};
constexpr KernelTraits kDropout = {InPlace::kOverwrites, false};

TEST(MemoryPlanTest, AnActivationSharesTheMemoryOfALayerThatNobodyElseReads) {
  const model::Graph graph =
      Of({Fc("fc", "input"), {.name = "relu", .kind = LayerKind::kRelu, .inputs = {"fc"}}});
  const MemoryPlan plan =
      PlanMemory(graph, {kPlain, kActivation}, 4, MapLayout::kChannelsFirst, true);
  EXPECT_EQ(plan.nodes[0].output, plan.nodes[1].output);
  EXPECT_EQ(plan.nodes[0].error, plan.nodes[1].error);
  EXPECT_EQ(plan.input, plan.maps);
}

TEST(MemoryPlanTest, ALayerWhoseValuesAreStillNeededIsNotOverwritten) {
  const model::Graph graph =
      Of({Fc("fc", "input"),
          {.name = "relu", .kind = LayerKind::kRelu, .inputs = {"fc"}},
          {.name = "flat", .kind = LayerKind::kFlatten, .inputs = {"relu"}},
          {.name = "drop", .kind = LayerKind::kDropout, .inputs = {"flat"}}});
  const MemoryPlan plan = PlanMemory(graph,
                                     {kPlain, kActivation, {InPlace::kSameValues, false}, kDropout},
                                     4,
                                     MapLayout::kChannelsFirst,
                                     true);
  EXPECT_EQ(plan.nodes[1].output, plan.nodes[2].output);
  EXPECT_NE(plan.nodes[2].output, plan.nodes[3].output);
}

TEST(MemoryPlanTest, ErrorsOfALayerWithTwoUsersAreSummed) {
  const model::Graph graph = Of({Fc("fc", "input"),
                                 {.name = "a", .kind = LayerKind::kRelu, .inputs = {"fc"}},
                                 {.name = "b", .kind = LayerKind::kTanh, .inputs = {"fc"}},
                                 {.name = "sum", .kind = LayerKind::kAdd, .inputs = {"a", "b"}}});
  const MemoryPlan plan = PlanMemory(
      graph, {kPlain, kActivation, kActivation, kPlain}, 4, MapLayout::kChannelsFirst, true);
  EXPECT_NE(plan.nodes[1].output, plan.nodes[0].output);
  EXPECT_EQ(plan.nodes[0].error, plan.nodes[2].input_errors[0]);  // "b" goes back first
  ASSERT_EQ(plan.nodes[1].sums.size(), 1u);
  EXPECT_EQ(plan.nodes[1].sums[0].from, plan.nodes[1].input_errors[0]);
  EXPECT_EQ(plan.nodes[1].sums[0].to, plan.nodes[0].error);
  EXPECT_EQ(plan.nodes[1].sums[0].count, 4 * 18);
}

TEST(MemoryPlanTest, NobodyAsksForErrorsAboveTheFirstParameter) {
  const model::Graph graph =
      Of({{.name = "relu", .kind = LayerKind::kRelu, .inputs = {"input"}}, Fc("fc", "relu")});
  const MemoryPlan plan =
      PlanMemory(graph, {kActivation, kPlain}, 4, MapLayout::kChannelsLast, true);
  EXPECT_EQ(plan.nodes[0].error, -1);
  EXPECT_EQ(plan.nodes[1].input_errors[0], -1);
  EXPECT_NE(plan.nodes[0].output, plan.maps);  // the input belongs to the caller
  EXPECT_NE(plan.input, plan.maps);
}

TEST(MemoryPlanTest, EvaluationHasNoErrors) {
  const model::Graph graph = Of({Fc("fc", "input")});
  const MemoryPlan training = PlanMemory(graph, {kPlain}, 4, MapLayout::kChannelsFirst, true);
  const MemoryPlan evaluation = PlanMemory(graph, {kPlain}, 4, MapLayout::kChannelsFirst, false);
  EXPECT_EQ(evaluation.nodes[0].error, -1);
  EXPECT_LT(evaluation.floats, training.floats);
}

}  // namespace
}  // namespace adamant::graph
