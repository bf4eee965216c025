#include "services/common/graph/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace adamant::graph {
namespace {

std::vector<std::string> Names(const model::Graph& graph) {
  std::vector<std::string> names;
  for (const model::Graph::Node& node : graph.nodes) {
    names.push_back(node.layer.name);
  }
  return names;
}

TEST(LowerTest, RelusMoveBehindPoolsAndFlattensComeBeforeFullyConnectedLayers) {
  const model::Graph graph = *model::BuildGraph(*model::ReferenceNet("adam-mnist"));
  const model::Graph lowered = Lower(graph);
  EXPECT_THAT(Names(lowered),
              testing::ElementsAre("conv1",
                                   "pool1",
                                   "relu1",
                                   "conv2",
                                   "pool2",
                                   "relu2",
                                   "fc1.flatten",
                                   "fc1",
                                   "relu3",
                                   "fc2",
                                   "relu4",
                                   "fc3"));
  EXPECT_EQ(lowered.nodes[1].output, (Shape{10, 12, 12}));
  EXPECT_EQ(lowered.nodes[2].output, (Shape{10, 12, 12}));
  EXPECT_EQ(lowered.nodes[7].weight, 4);
  EXPECT_EQ(lowered.output, 11);
}

TEST(LowerTest, ALayerThatDoesNotKeepTheOrderOfItsValuesStaysBeforeItsPool) {
  using model::LayerKind;
  std::vector<model::Layer> layers(3);
  layers[0] = {.name = "drop", .kind = LayerKind::kDropout, .inputs = {"input"}};
  layers[1] = {.name = "pool", .kind = LayerKind::kMaxPool, .inputs = {"drop"}};
  layers[2] = {.name = "out", .kind = LayerKind::kFullyConnected, .inputs = {"pool"}};
  layers[2].channels = 2;
  const auto graph = model::BuildGraph({{1, 2, 2}, 2, layers, ""});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Names(Lower(*graph)), testing::ElementsAre("drop", "pool", "out.flatten", "out"));
}

TEST(LowerTest, AReluWithASecondUserStays) {
  using model::LayerKind;
  std::vector<model::Layer> layers(4);
  layers[0] = {.name = "relu", .kind = LayerKind::kRelu, .inputs = {"input"}};
  layers[1] = {.name = "pool", .kind = LayerKind::kMaxPool, .inputs = {"relu"}};
  layers[2] = {.name = "both", .kind = LayerKind::kAdd, .inputs = {"relu", "pool"}};
  layers[3] = {.name = "out", .kind = LayerKind::kFullyConnected, .inputs = {"both"}};
  layers[3].channels = 2;
  const auto graph = model::BuildGraph({{1, 2, 2}, 2, layers, ""});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Names(Lower(*graph)),
              testing::ElementsAre("relu", "pool", "both", "out.flatten", "out"));
}

}  // namespace
}  // namespace adamant::graph
