#include "services/common/graph/memory_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

/// Everything in the canonical layout.
Program Plainly(model::Graph graph) {
  Program program;
  const auto count = graph.nodes.size();
  program.graph = std::move(graph);
  program.layouts.resize(count);
  program.segments = {{0, static_cast<int>(count), false}};
  return program;
}

constexpr KernelTraits kPlain = {};
constexpr KernelTraits kActivation = {
    .in_place = InPlace::kOverwrites, .needs_inputs = false, .needs_output = true};
constexpr KernelTraits kDropout = {.in_place = InPlace::kOverwrites, .needs_inputs = false};
constexpr KernelTraits kFlatten = {.in_place = InPlace::kSameValues, .needs_inputs = false};

TEST(MemoryPlanTest, AnActivationSharesTheMemoryOfALayerThatNobodyElseReads) {
  const Program program = Plainly(
      Of({Fc("fc", "input"), {.name = "relu", .kind = LayerKind::kRelu, .inputs = {"fc"}}}));
  const MemoryPlan plan = PlanMemory(program, {kPlain, kActivation}, 4, true);
  EXPECT_EQ(plan.nodes[0].output, plan.nodes[1].output);
  EXPECT_EQ(plan.nodes[0].error, plan.nodes[1].error);
}

TEST(MemoryPlanTest, ALayerWhoseValuesAreStillNeededIsNotOverwritten) {
  const Program program =
      Plainly(Of({Fc("fc", "input"),
                  {.name = "relu", .kind = LayerKind::kRelu, .inputs = {"fc"}},
                  {.name = "flat", .kind = LayerKind::kFlatten, .inputs = {"relu"}},
                  {.name = "drop", .kind = LayerKind::kDropout, .inputs = {"flat"}}}));
  const MemoryPlan plan = PlanMemory(program, {kPlain, kActivation, kFlatten, kDropout}, 4, true);
  EXPECT_EQ(plan.nodes[1].output, plan.nodes[2].output);
  EXPECT_NE(plan.nodes[2].output, plan.nodes[3].output);
}

TEST(MemoryPlanTest, ErrorsOfALayerWithTwoUsersAreSummed) {
  const Program program =
      Plainly(Of({Fc("fc", "input"),
                  {.name = "a", .kind = LayerKind::kRelu, .inputs = {"fc"}},
                  {.name = "b", .kind = LayerKind::kTanh, .inputs = {"fc"}},
                  {.name = "sum", .kind = LayerKind::kAdd, .inputs = {"a", "b"}}}));
  const MemoryPlan plan = PlanMemory(program, {kPlain, kActivation, kActivation, kPlain}, 4, true);
  EXPECT_NE(plan.nodes[1].output, plan.nodes[0].output);
  EXPECT_EQ(plan.nodes[0].error, plan.nodes[2].input_errors[0]);  // "b" goes back first
  ASSERT_EQ(plan.nodes[1].sums.size(), 1u);
  EXPECT_EQ(plan.nodes[1].sums[0].from, plan.nodes[1].input_errors[0]);
  EXPECT_EQ(plan.nodes[1].sums[0].to, plan.nodes[0].error);
  EXPECT_EQ(plan.nodes[1].sums[0].input, 0);
}

TEST(MemoryPlanTest, NobodyAsksForErrorsAboveTheFirstParameter) {
  const Program program = Plainly(
      Of({{.name = "relu", .kind = LayerKind::kRelu, .inputs = {"input"}}, Fc("fc", "relu")}));
  const MemoryPlan plan = PlanMemory(program, {kActivation, kPlain}, 4, true);
  EXPECT_FALSE(plan.nodes[0].error.exists());
  EXPECT_FALSE(plan.nodes[1].input_errors[0].exists());
  EXPECT_NE(plan.nodes[0].output, plan.input);  // the input belongs to the caller
}

TEST(MemoryPlanTest, EvaluationHasNoErrors) {
  const Program program = Plainly(Of({Fc("fc", "input")}));
  const MemoryPlan training = PlanMemory(program, {kPlain}, 4, true);
  const MemoryPlan evaluation = PlanMemory(program, {kPlain}, 4, false);
  EXPECT_FALSE(evaluation.nodes[0].error.exists());
  EXPECT_LT(evaluation.floats, training.floats);
}

/// A chain of maps with the batch innermost between the input and the features of the output.
Program Interleaved() {
  model::Graph graph = Of({{.name = "in", .kind = LayerKind::kFlatten, .inputs = {"input"}},
                           {.name = "relu", .kind = LayerKind::kRelu, .inputs = {"in"}},
                           Fc("fc", "relu")});
  // As MakeProgram puts it: the first layer keeps maps, the last takes features.
  graph.nodes[0].output = graph.nodes[1].output = graph.input;
  graph.nodes[0].weight = 0;  // so that errors are asked for
  model::Graph::Node flat;
  flat.layer.kind = LayerKind::kFlatten;
  flat.inputs = {1};
  flat.output = {18};
  graph.nodes.insert(graph.nodes.begin() + 2, flat);
  graph.nodes[3].inputs = {2};
  graph.output = 3;
  constexpr auto kFirst = kernels::MapLayout::kChannelsFirst;
  constexpr auto kInnermost = kernels::MapLayout::kBatchInnermost;
  return {.graph = std::move(graph),
          .layouts = {{kFirst, kInnermost}, {kInnermost, kInnermost}, {kInnermost, kFirst}, {}},
          .segments = {{0, 3, true}, {3, 4, false}}};
}

TEST(MemoryPlanTest, BlocksLeaveTheMemoryOfTheirErrorsToTheNext) {
  const MemoryPlan plan =
      PlanMemory(Interleaved(), {kPlain, kPlain, kPlain, kPlain}, 20, /*training=*/true);
  for (const int i : {0, 1, 2}) {
    EXPECT_EQ(plan.nodes[i].output.stride, 16 * 18) << i;
  }
  EXPECT_EQ(plan.nodes[0].error.stride, 0);
  EXPECT_EQ(plan.nodes[1].error.stride, 0);
  EXPECT_EQ(plan.nodes[2].error.stride, 16 * 18);  // another segment writes all of it
}

TEST(MemoryPlanTest, SoDoOutputsThatNobodyNeedsBackward) {
  constexpr KernelTraits kLight = {.needs_inputs = false};
  const MemoryPlan plan = PlanMemory(Interleaved(), {kPlain, kLight, kLight, kPlain}, 20, true);
  EXPECT_EQ(plan.nodes[0].output.stride, 0);
  EXPECT_EQ(plan.nodes[1].output.stride, 0);
  EXPECT_NE(plan.nodes[0].output.offset, plan.nodes[1].output.offset);
  EXPECT_EQ(plan.nodes[2].output.stride, 16 * 18);  // another segment reads all of it

  constexpr KernelTraits kReadsOutput = {.needs_inputs = false, .needs_output = true};
  const MemoryPlan read =
      PlanMemory(Interleaved(), {kPlain, kReadsOutput, kLight, kPlain}, 20, true);
  EXPECT_EQ(read.nodes[0].output.stride, 0);
  EXPECT_EQ(read.nodes[1].output.stride, 16 * 18);

  const MemoryPlan shared =
      PlanMemory(Interleaved(), {kPlain, kActivation, kLight, kPlain}, 20, true);
  EXPECT_EQ(shared.nodes[0].output, shared.nodes[1].output);
  EXPECT_EQ(shared.nodes[0].output.stride, 16 * 18);

  const MemoryPlan evaluation =
      PlanMemory(Interleaved(), {kPlain, kPlain, kPlain, kPlain}, 20, false);
  EXPECT_EQ(evaluation.nodes[0].output.stride, 0);
  EXPECT_EQ(evaluation.nodes[1].output.stride, 0);
}

TEST(MemoryPlanTest, WhatAKernelKeepsIsThereForEachOfItsCalls) {
  constexpr KernelTraits kKeeps = {.needs_inputs = false, .kept_bytes = 100};
  const std::vector<KernelTraits> traits = {kPlain, kKeeps, kPlain, kKeeps};
  const MemoryPlan plan = PlanMemory(Interleaved(), traits, 20, true);
  EXPECT_FALSE(plan.nodes[0].kept.exists());
  EXPECT_EQ(plan.nodes[1].kept.stride, 32);  // two cache lines
  EXPECT_TRUE(plan.nodes[3].kept.exists());
  EXPECT_FALSE(PlanMemory(Interleaved(), traits, 20, false).nodes[1].kept.exists());
}

TEST(MemoryPlanTest, NothingOverlapsWhatIsStillNeeded) {
  const Program program = Interleaved();
  constexpr KernelTraits kKeeps = {.kept_bytes = 100};
  const MemoryPlan plan = PlanMemory(program, {kPlain, kKeeps, kPlain, kPlain}, 20, true);
  // All outputs are needed by the backward passes, so each has memory of its own, whole blocks of
  // it where the batch is innermost; and the error that reaches the first segment must survive it.
  const std::int64_t rows[] = {32, 32, 20, 20};
  constexpr std::int64_t kFeatures = 18;  // of every output
  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };
  std::vector<Range> ranges = {{plan.input.offset, plan.input.offset + 20 * kFeatures}};
  for (const int i : {0, 1, 2, 3}) {
    const std::int64_t begin = plan.nodes[i].output.offset;
    ranges.push_back({begin, begin + rows[i] * kFeatures});
  }
  ranges.push_back({plan.nodes[2].error.offset, plan.nodes[2].error.offset + 20 * kFeatures});
  for (const int i : {0, 1}) {
    const std::int64_t begin = plan.nodes[i].error.offset;
    ranges.push_back({begin, begin + 16 * kFeatures});
  }
  const Place& kept = plan.nodes[1].kept;
  ranges.push_back({kept.offset, kept.offset + 2 * kept.stride});
  for (std::size_t a = 0; a < ranges.size(); ++a) {
    EXPECT_LE(ranges[a].end, plan.floats);
    for (std::size_t b = 0; b < a; ++b) {
      EXPECT_TRUE(ranges[a].end <= ranges[b].begin || ranges[b].end <= ranges[a].begin)
          << a << " and " << b;
    }
  }
}

TEST(MemoryPlanTest, WhatNobodyNeedsAnyMoreIsUsedAgain) {
  // Twelve layers one after the other; evaluation needs two at a time.
  std::vector<model::Layer> layers = {
      {.name = "l0", .kind = LayerKind::kTanh, .inputs = {"input"}}};
  for (int i = 1; i < 12; ++i) {
    layers.push_back({.name = "l" + std::to_string(i),
                      .kind = LayerKind::kTanh,
                      .inputs = {"l" + std::to_string(i - 1)}});
  }
  layers.push_back(Fc("fc", "l11"));
  const Program program = Plainly(Of(std::move(layers)));
  const std::vector<KernelTraits> traits(program.graph.nodes.size(), kPlain);
  const MemoryPlan plan = PlanMemory(program, traits, 64, /*training=*/false);
  EXPECT_LE(plan.floats, 5 * 64 * 18);  // input, two layers, logits, and less than one to spare
}

}  // namespace
}  // namespace adamant::graph
