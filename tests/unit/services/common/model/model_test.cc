#include "services/common/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace adamant::model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Layer Make(std::string name, LayerKind kind, std::vector<std::string> inputs) {
  Layer layer;
  layer.name = std::move(name);
  layer.kind = kind;
  layer.inputs = std::move(inputs);
  return layer;
}

Layer Conv(std::string name, std::string input, std::int64_t channels, std::int64_t kernel) {
  Layer layer = Make(std::move(name), LayerKind::kConv2d, {std::move(input)});
  layer.channels = channels;
  layer.kernel = {kernel, kernel};
  return layer;
}

Layer Fc(std::string name, std::string input, std::int64_t outputs) {
  Layer layer = Make(std::move(name), LayerKind::kFullyConnected, {std::move(input)});
  layer.channels = outputs;
  return layer;
}

Net Of(std::vector<Layer> layers, std::string output = "") {
  return {
      .input = {2, 8, 8}, .classes = 3, .layers = std::move(layers), .output = std::move(output)};
}

auto Says(int layer, const std::string& field, const std::string& part) {
  return AllOf(Field(&Problem::layer, layer),
               Field(&Problem::field, field),
               Field(&Problem::message, HasSubstr(part)));
}

TEST(ReferenceNetTest, AdamMnistHasTheSizesOfThePaper) {
  const auto graph = BuildGraph(*ReferenceNet("adam-mnist"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::int64_t parameters = 0;
  for (const Parameter& parameter : graph->parameters) {
    parameters += *ElementCount(parameter.shape);
  }
  EXPECT_EQ(parameters, 298090);
  EXPECT_EQ(graph->flop_per_example, 4248000);
  ASSERT_EQ(graph->parameters.size(), 10u);
  EXPECT_EQ(graph->parameters[0].name, "conv1.weight");
  EXPECT_EQ(graph->parameters[0].shape, (Shape{10, 1, 5, 5}));
  EXPECT_EQ(graph->parameters[0].fan_in, 25);
  EXPECT_EQ(graph->parameters[0].initialisation, Initialisation::kHe);
  EXPECT_EQ(graph->parameters[4].shape, (Shape{400, 320}));
  EXPECT_EQ(graph->parameters[9].name, "fc3.bias");
  EXPECT_FALSE(graph->parameters[9].decays);
  EXPECT_EQ(graph->parameters[8].initialisation, Initialisation::kXavier);
}

TEST(ReferenceNetTest, EveryNameBuildsAndAnUnknownOneListsThem) {
  for (const std::string& name : ReferenceNetNames()) {
    EXPECT_TRUE(BuildGraph(*ReferenceNet(name)).ok()) << name;
  }
  const auto missing = ReferenceNet("adam");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("adam-mnist"));
}

TEST(CheckTest, AllProblemsAreReportedAtOnceInTheOrderOfTheLayers) {
  Layer conv = Conv("conv", "input", 0, 3);
  conv.stride = {0, 1};
  const Net net = Of({conv, Fc("Fc", "nothing", 3), Fc("out", "conv", 4)}, "end");
  EXPECT_THAT(Check(net),
              ElementsAre(Says(-1, "output", "\"end\""),
                          Says(0, "channels", "not 0"),
                          Says(0, "stride", "not 0x1"),
                          Says(1, "name", "\"Fc\""),
                          Says(1, "inputs", "\"nothing\"")));
}

TEST(CheckTest, NamesMustBeUniqueAndNotInput) {
  const Net net = Of({Make("input", LayerKind::kRelu, {"input"}),
                      Make("a", LayerKind::kRelu, {"input"}),
                      Make("a", LayerKind::kRelu, {"a"}),
                      Fc("out", "a", 3)});
  EXPECT_THAT(Check(net),
              testing::IsSupersetOf(
                  {Says(0, "name", "own input"), Says(2, "name", "also the name of layer 2")}));
}

TEST(CheckTest, CyclesAreNamedOnceEach) {
  const Net net = Of({Make("a", LayerKind::kRelu, {"b"}),
                      Make("b", LayerKind::kRelu, {"c"}),
                      Make("c", LayerKind::kRelu, {"a"}),
                      Make("self", LayerKind::kRelu, {"self"}),
                      Make("both", LayerKind::kAdd, {"c", "self"}),
                      Fc("out", "both", 3)});
  EXPECT_THAT(
      Check(net),
      ElementsAre(Says(0, "inputs", "a -> c -> b -> a"), Says(3, "inputs", "self -> self")));
}

TEST(CheckTest, LayersThatLeadNowhereAreReported) {
  const Net net = Of({Make("dead", LayerKind::kRelu, {"input"}), Fc("out", "input", 3)});
  EXPECT_THAT(Check(net), ElementsAre(Says(0, "", "output layer \"out\"")));
}

TEST(CheckTest, ShapesThatDoNotFitNameTheSizes) {
  EXPECT_THAT(Check(Of({Conv("c", "input", 4, 9), Fc("out", "c", 3)})),
              ElementsAre(Says(0, "kernel", "9x9, more than its input of 2x8x8")));
  Layer wide = Conv("c", "input", 4, 1);
  wide.kernel = {1, 9};
  EXPECT_THAT(Check(Of({wide, Fc("out", "c", 3)})), ElementsAre(Says(0, "kernel", "1x9")));
  EXPECT_THAT(Check(Of({Fc("f", "input", 5), Conv("c", "f", 4, 1), Fc("out", "c", 3)})),
              ElementsAre(Says(1, "inputs", "gets 5 features")));
  EXPECT_THAT(Check(Of({Fc("out", "input", 4)})), ElementsAre(Says(0, "channels", "3 classes")));
  Layer grouped = Conv("c", "input", 3, 1);
  grouped.groups = 2;
  EXPECT_THAT(Check(Of({grouped, Fc("out", "c", 3)})),
              ElementsAre(Says(0, "groups", "2 input and 3 output")));
  Layer padded = Conv("c", "input", 3, 2);
  padded.padding = {2, 0};
  EXPECT_THAT(Check(Of({padded, Fc("out", "c", 3)})), ElementsAre(Says(0, "padding", "2x2")));
  EXPECT_THAT(Check(Of({Conv("c", "input", 3, 1),
                        Make("sum", LayerKind::kAdd, {"c", "input"}),
                        Fc("out", "sum", 3)})),
              ElementsAre(Says(1, "inputs", "3x8x8 and 2x8x8")));
  EXPECT_THAT(Check(Of({Conv("c", "input", 3, 2),
                        Make("all", LayerKind::kConcat, {"c", "input"}),
                        Fc("out", "all", 3)})),
              ElementsAre(Says(1, "inputs", "3x7x7 and 2x8x8")));
}

TEST(CheckTest, JoinsTakeTwoInputsAndOthersOne) {
  EXPECT_THAT(Check(Of({Make("sum", LayerKind::kAdd, {"input"}), Fc("out", "sum", 3)})),
              ElementsAre(Says(0, "inputs", "2 or more")));
  Layer out = Fc("out", "input", 3);
  out.inputs = {"input", "input"};
  EXPECT_THAT(Check(Of({out})), ElementsAre(Says(0, "inputs", "1 input, not 2")));
}

TEST(CheckTest, SizesThatOverflowAreRefused) {
  Net net = Of({Fc("out", "input", 3)});
  net.input = {std::numeric_limits<std::int64_t>::max(), 2, 2};
  EXPECT_THAT(Check(net), ElementsAre(Says(-1, "input", "too large")));
  net.input = {std::int64_t{1} << 24, 1 << 12, 1 << 12};
  net.layers[0].channels = 1 << 20;
  EXPECT_THAT(Check(net), ElementsAre(Says(0, "", "weights")));
  net.input = {1 << 10, 1 << 10, 1 << 10};
  net.layers = {Conv("c", "input", 1 << 10, 31), Fc("out", "c", 3)};
  EXPECT_THAT(Check(net), ElementsAre(Says(0, "", "operations")));
  net.layers[0].kernel = {std::numeric_limits<std::int64_t>::max(), 1};
  EXPECT_THAT(Check(net), ElementsAre(Says(0, "kernel", "the kernel must be between")));
}

TEST(CheckTest, EmptyAndImpossibleNetsAreRefused) {
  EXPECT_THAT(Check(Net{}),
              ElementsAre(Says(-1, "input", "scalar"),
                          Says(-1, "classes", "not 0"),
                          Says(-1, "layers", "no layers")));
  Layer dropout = Make("d", LayerKind::kDropout, {"input"});
  for (const double rate : {1.0, -0.1, std::numeric_limits<double>::quiet_NaN()}) {
    dropout.dropout_rate = rate;
    EXPECT_THAT(Check(Of({dropout, Fc("out", "d", 3)})),
                ElementsAre(Says(0, "dropout_rate", "below 1")));
  }
}

TEST(BuildGraphTest, LayersAreSortedStablyWithInputsFirst) {
  Layer head = Fc("out", "both", 3);
  const auto graph = BuildGraph(Of({head,
                                    Make("both", LayerKind::kConcat, {"right", "left"}),
                                    Make("left", LayerKind::kRelu, {"input"}),
                                    Make("right", LayerKind::kTanh, {"input"})},
                                   "out"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> names;
  for (const Graph::Node& node : graph->nodes) {
    names.push_back(node.layer.name);
  }
  EXPECT_THAT(names, ElementsAre("left", "right", "both", "out"));
  EXPECT_THAT(graph->nodes[2].inputs, ElementsAre(1, 0));
  EXPECT_THAT(graph->nodes[0].inputs, ElementsAre(-1));
  EXPECT_EQ(graph->nodes[2].output, (Shape{4, 8, 8}));
  EXPECT_EQ(graph->output, 3);
  EXPECT_EQ(graph->parameters[0].shape, (Shape{3, 256}));
}

TEST(BuildGraphTest, WindowsFollowStridePaddingAndDilation) {
  Layer conv = Conv("c", "input", 6, 3);
  conv.stride = {2, 1};
  conv.padding = {1, 2};
  conv.dilation = {1, 2};
  conv.groups = 2;
  Layer pool = Make("p", LayerKind::kAveragePool, {"c"});
  pool.kernel = {3, 2};
  pool.stride = {1, 3};
  const auto graph = BuildGraph(Of({conv, pool, Fc("out", "p", 3)}));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes[0].output, (Shape{6, 4, 8}));
  EXPECT_EQ(graph->nodes[1].output, (Shape{6, 2, 3}));
  EXPECT_EQ(graph->parameters[0].shape, (Shape{6, 1, 3, 3}));
  EXPECT_EQ(graph->parameters[0].fan_in, 9);
}

TEST(BuildGraphTest, TheFirstProblemIsTheError) {
  const auto graph = BuildGraph(Of({Fc("out", "input", 4)}));
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("out: channels: "));
}

TEST(CheckTest, SoundNetsHaveNoProblems) {
  EXPECT_THAT(Check(*ReferenceNet("adam-mnist")), IsEmpty());
}

}  // namespace
}  // namespace adamant::model
