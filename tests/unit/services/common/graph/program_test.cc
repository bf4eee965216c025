#include "services/common/graph/program.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace adamant::graph {
namespace {

using kernels::MapLayout;
using model::LayerKind;

/// Convolutions are fast with the batch innermost if they have few channels, else with the channels
/// last; a change of layout costs `change`.
class FakeBackend final : public kernels::Backend {
 public:
  explicit FakeBackend(double change) : change_(change) {}

  [[nodiscard]] std::optional<double> Cost(const kernels::Spec& spec) const override {
    if (spec.layer.kind == LayerKind::kFlatten) {
      return change_;
    }
    if (spec.layout == MapLayout::kChannelsFirst && spec.output.size() == 3) {
      return std::nullopt;
    }
    if (spec.layer.kind != LayerKind::kConv2d) {
      return 1;
    }
    const bool few = spec.output[0] < 8;
    return few == (spec.layout == MapLayout::kBatchInnermost) ? 10 : 20;
  }

  absl::StatusOr<std::unique_ptr<kernels::Kernel<float>>> Make(const kernels::Spec&) override {
    return absl::UnimplementedError("not asked for");
  }

 private:
  const double change_;
};

model::Layer Conv(std::string name, std::string input, std::int64_t channels) {
  model::Layer layer = {
      .name = std::move(name), .kind = LayerKind::kConv2d, .inputs = {std::move(input)}};
  layer.channels = channels;
  layer.kernel = {3, 3};
  layer.padding = {1, 1};
  return layer;
}

model::Layer Plain(std::string name, LayerKind kind, std::vector<std::string> inputs) {
  return {.name = std::move(name), .kind = kind, .inputs = std::move(inputs)};
}

Program Make(std::vector<model::Layer> layers, double change) {
  model::Layer fc = Plain("fc", LayerKind::kFullyConnected, {layers.back().name});
  fc.channels = 10;
  layers.push_back(fc);
  const auto graph = model::BuildGraph({{3, 8, 8}, 10, std::move(layers), ""});
  EXPECT_TRUE(graph.ok()) << graph.status();
  return MakeProgram(*graph, FakeBackend(change), 32, /*training=*/true);
}

/// "name:first>last", a node each.
std::string Describe(const Program& program) {
  const auto name = [](MapLayout layout) {
    return layout == MapLayout::kChannelsFirst  ? "first"
           : layout == MapLayout::kChannelsLast ? "last"
                                                : "batch";
  };
  std::string text;
  for (std::size_t i = 0; i < program.layouts.size(); ++i) {
    text += (i == 0 ? "" : " ") + program.graph.nodes[i].layer.name + ":" +
            name(program.layouts[i].input) + ">" + name(program.layouts[i].output);
  }
  return text;
}

TEST(ProgramTest, EveryLayerHasItsBestLayoutIfChangesAreCheap) {
  const Program program = Make({Conv("a", "input", 4), Conv("b", "a", 16)}, 2);
  EXPECT_EQ(Describe(program),
            "a.layout:first>batch a:batch>batch b.layout:batch>last b:last>last "
            "fc.flatten:last>first fc:first>first");
}

TEST(ProgramTest, ChangesThatCostMoreThanTheyGainAreNotMade) {
  const Program program = Make({Conv("a", "input", 4), Conv("b", "a", 16), Conv("c", "b", 16)}, 12);
  EXPECT_EQ(Describe(program),
            "a.layout:first>last a:last>last b:last>last c:last>last fc.flatten:last>first "
            "fc:first>first");
}

TEST(ProgramTest, LayersBetweenFollowTheirNeighbours) {
  const Program program = Make(
      {Conv("a", "input", 4), Plain("relu", LayerKind::kRelu, {"a"}), Conv("b", "relu", 4)}, 2);
  EXPECT_EQ(Describe(program),
            "a.layout:first>batch a:batch>batch relu:batch>batch b:batch>batch "
            "fc.flatten:batch>first fc:first>first");
}

TEST(ProgramTest, AReluBehindAMaxPoolIsPartOfIt) {
  model::Layer pool = Plain("pool", LayerKind::kMaxPool, {"a"});
  pool.kernel = pool.stride = {2, 2};
  const auto made = [&](std::int64_t channels) {
    return Make({Conv("a", "input", channels), pool, Plain("relu", LayerKind::kRelu, {"pool"})}, 2);
  };
  const Program few = made(4);
  EXPECT_EQ(Describe(few),
            "a.layout:first>batch a:batch>batch pool+relu:batch>batch fc.flatten:batch>first "
            "fc:first>first");
  EXPECT_TRUE(few.SpecOf(2, 32, true).relu);
  EXPECT_FALSE(few.SpecOf(1, 32, true).relu);
  EXPECT_EQ(Describe(made(16)),
            "a.layout:first>last a:last>last pool:last>last relu:last>last fc.flatten:last>first "
            "fc:first>first");
}

TEST(ProgramTest, OneChangeServesAllWhoWantIt) {
  const Program program = Make({Conv("a", "input", 16),
                                Conv("b", "a", 4),
                                Conv("c", "a", 4),
                                Plain("sum", LayerKind::kAdd, {"b", "c"})},
                               2);
  EXPECT_EQ(Describe(program),
            "a.layout:first>last a:last>last b.layout:last>batch b:batch>batch c:batch>batch "
            "sum:batch>batch fc.flatten:batch>first fc:first>first");
  EXPECT_EQ(program.graph.nodes[4].inputs, std::vector<int>{2});
}

TEST(ProgramTest, NodesAroundMapsWithTheBatchInnermostRunTogether) {
  const Program program = Make({Conv("a", "input", 4), Conv("b", "a", 16)}, 2);
  ASSERT_EQ(program.segments.size(), 2u);
  EXPECT_TRUE(program.segments[0].blocked);
  EXPECT_EQ(program.segments[0].end, 3);  // with both changes of layout
  EXPECT_FALSE(program.segments[1].blocked);
  EXPECT_EQ(program.segments[1].end, 6);
  EXPECT_EQ(program.SpecOf(1, 100, true).batch, 16);
  EXPECT_EQ(program.SpecOf(3, 100, true).batch, 100);
}

}  // namespace
}  // namespace adamant::graph
