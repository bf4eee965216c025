// What a gradient test cannot see: the values themselves, on cases small enough to work out by
// hand.

#include "services/common/kernels/reference/reference.h"

#include <gmock/gmock.h>

#include "tests/unit/services/common/kernels/kernel_fixture.h"

namespace adamant::kernels {
namespace {

using model::LayerKind;
using testing::ElementsAre;

std::vector<double> Forward(const Spec& spec, Tensors<double>& tensors) {
  MakeReferenceKernel<double>(spec)->Forward(tensors.View());
  return tensors.output;
}

TEST(ReferenceTest, AConvolutionIsACorrelationPlusBias) {
  model::Layer layer = LayerOf(LayerKind::kConv2d);
  layer.channels = 1;
  layer.kernel = {1, 2};
  layer.padding = {0, 1};
  const Spec spec = MakeSpec(layer, {{1, 1, 3}}, 1);
  Tensors<double> tensors(spec);
  tensors.inputs = {{1, 2, 3}};
  tensors.weight = {10, 1};
  tensors.bias = {0.5};
  EXPECT_THAT(Forward(spec, tensors), ElementsAre(1.5, 12.5, 23.5, 30.5));
}

TEST(ReferenceTest, FullyConnectedWeightsAreOutputsByInputs) {
  model::Layer layer = LayerOf(LayerKind::kFullyConnected);
  layer.channels = 2;
  const Spec spec = MakeSpec(layer, {{3}}, 1);
  Tensors<double> tensors(spec);
  tensors.inputs = {{1, 2, 3}};
  tensors.weight = {1, 10, 100, 0, 0, 1};
  tensors.bias = {0.5, 0};
  EXPECT_THAT(Forward(spec, tensors), ElementsAre(321.5, 3));
}

TEST(ReferenceTest, PaddingNeverWinsAMaximumAndCountsInAMean) {
  model::Layer layer = LayerOf(LayerKind::kMaxPool);
  layer.kernel = {1, 2};
  layer.stride = {1, 2};
  layer.padding = {0, 1};
  Spec spec = MakeSpec(layer, {{1, 1, 3}}, 1);
  Tensors<double> tensors(spec);
  tensors.inputs = {{-4, -2, -3}};
  EXPECT_THAT(Forward(spec, tensors), ElementsAre(-4, -2));
  spec.layer.kind = LayerKind::kAveragePool;
  EXPECT_THAT(Forward(spec, tensors), ElementsAre(-2, -2.5));
}

TEST(ReferenceTest, FlattenPutsChannelsFirstWhateverTheLayout) {
  Spec spec = MakeSpec(LayerOf(LayerKind::kFlatten), {{2, 1, 3}}, 1, MapLayout::kChannelsLast);
  Tensors<double> tensors(spec);
  tensors.inputs = {{1, 10, 2, 20, 3, 30}};
  EXPECT_THAT(Forward(spec, tensors), ElementsAre(1, 2, 3, 10, 20, 30));
  spec.input_layout = MapLayout::kChannelsFirst;
  EXPECT_THAT(Forward(spec, tensors), ElementsAre(1, 10, 2, 20, 3, 30));
}

TEST(ReferenceTest, ConcatJoinsChannelsInBothLayouts) {
  Spec spec = MakeSpec(LayerOf(LayerKind::kConcat), {{1, 1, 2}, {2, 1, 2}}, 1);
  Tensors<double> tensors(spec);
  tensors.inputs = {{1, 2}, {10, 20, 30, 40}};
  EXPECT_THAT(Forward(spec, tensors), ElementsAre(1, 2, 10, 20, 30, 40));
  spec.layout = MapLayout::kChannelsLast;
  EXPECT_THAT(Forward(spec, tensors), ElementsAre(1, 10, 20, 2, 30, 40));
}

TEST(ReferenceTest, DropoutKeepsTheMeanAndTheShareAndFollowsTheSeed) {
  model::Layer layer = LayerOf(LayerKind::kDropout);
  layer.dropout_rate = 0.25;
  const Spec spec = MakeSpec(layer, {{10000}}, 1);
  Tensors<double> tensors(spec);
  tensors.inputs[0].assign(10000, 1);
  const std::vector<double> first = Forward(spec, tensors);
  const auto dropped = std::count(first.begin(), first.end(), 0.0);
  EXPECT_NEAR(static_cast<double>(dropped), 2500, 150);
  EXPECT_EQ(std::count(first.begin(), first.end(), 1 / 0.75), 10000 - dropped);
  EXPECT_EQ(Forward(spec, tensors), first);
  Operands<double> view = tensors.View();
  view.seed = 78;
  MakeReferenceKernel<double>(spec)->Forward(view);
  EXPECT_NE(tensors.output, first);
  view.dropout = false;
  MakeReferenceKernel<double>(spec)->Forward(view);
  EXPECT_EQ(tensors.output, tensors.inputs[0]);
}

TEST(ReferenceTest, DropoutDropsTheSameInBothLayouts) {
  model::Layer layer = LayerOf(LayerKind::kDropout);
  layer.dropout_rate = 0.5;
  Spec spec = MakeSpec(layer, {{3, 4, 5}}, 2);
  Tensors<double> tensors(spec);
  for (auto& value : tensors.inputs[0]) {
    value = 1;
  }
  const std::vector<double> first = Forward(spec, tensors);
  spec.layout = MapLayout::kChannelsLast;
  EXPECT_EQ(ToChannelsFirst(2, {3, 4, 5}, Forward(spec, tensors)), first);
}

}  // namespace
}  // namespace adamant::kernels
