#include "services/common/graph/parameter_plan.h"

#include <gtest/gtest.h>

#include <utility>

namespace adamant::graph {
namespace {

/// Two fully connected layers: parameters of 40, 10, 30 and 3.
class ParameterPlanTest : public testing::Test {
 protected:
  ParameterPlanTest() {
    model::Layer hidden = {
        .name = "hidden", .kind = model::LayerKind::kFullyConnected, .inputs = {"input"}};
    hidden.channels = 10;
    model::Layer out = {
        .name = "out", .kind = model::LayerKind::kFullyConnected, .inputs = {"hidden"}};
    out.channels = 3;
    auto graph = model::BuildGraph({{1, 2, 2}, 3, {hidden, out}, ""});
    EXPECT_TRUE(graph.ok()) << graph.status();
    program_.graph = *std::move(graph);
    program_.layouts.resize(program_.graph.nodes.size());
    program_.segments = {{0, static_cast<int>(program_.graph.nodes.size()), false}};
  }

  [[nodiscard]] ParameterPlan Plan(ParameterTraits traits, bool training = true) const {
    return PlanParameters(
        program_, std::vector<ParameterTraits>(program_.graph.nodes.size(), traits), training);
  }

  Program program_;
};

TEST_F(ParameterPlanTest, ParametersLieEndToEnd) {
  const ParameterPlan plan = Plan({});
  EXPECT_EQ(plan.parameters, 83);
  std::int64_t next = 0;
  for (const ParameterPlace& place : plan.places) {
    EXPECT_EQ(place.begin, next);
    next += place.count;
  }
}

TEST_F(ParameterPlanTest, LayersThatFollowEachOtherUseTheSameMemoryForTheirGradients) {
  const ParameterPlan plan = Plan({});
  EXPECT_EQ(plan.places[0].gradient, plan.places[2].gradient);
  EXPECT_EQ(plan.places[0].copy, 0);
  EXPECT_EQ(plan.places[1].copy, 48);  // on cache lines
  EXPECT_EQ(plan.places[0].gradient, 112);
  EXPECT_EQ(plan.floats, 112 + 48 + 16);
}

TEST_F(ParameterPlanTest, LayersThatRunTogetherHaveMemoryEach) {
  program_.segments[0].blocked = true;
  const ParameterPlan plan = Plan({});
  EXPECT_EQ(plan.places[2].gradient, plan.places[1].gradient + 16);
  EXPECT_EQ(plan.floats, 112 + 48 + 16 + 32 + 16);
}

TEST_F(ParameterPlanTest, WhatKernelsDoThemselvesNeedsNoMemory) {
  const ParameterPlan plan =
      Plan({.reads_shared_weights = true, .hands_over_weight_gradient = true});
  EXPECT_EQ(plan.places[0].copy, -1);
  EXPECT_EQ(plan.places[0].gradient, -1);
  EXPECT_GE(plan.places[1].copy, 0);
  EXPECT_GE(plan.places[1].gradient, 0);
}

TEST_F(ParameterPlanTest, WithoutTrainingThereAreNoGradients) {
  for (const ParameterPlace& place : Plan({}, false).places) {
    EXPECT_EQ(place.gradient, -1);
  }
}

}  // namespace
}  // namespace adamant::graph
