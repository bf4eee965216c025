// Every layer's Backward against central differences of its Forward, in double precision.

#include "services/common/kernels/reference/reference.h"
#include "tests/unit/services/common/kernels/kernel_fixture.h"

namespace adamant::kernels {
namespace {

using model::LayerKind;

/// The sum of output * output_error, whose gradient Backward computes.
double Objective(Kernel<double>& kernel, Tensors<double>& tensors) {
  kernel.Forward(tensors.View());
  double sum = 0;
  for (std::size_t i = 0; i < tensors.output.size(); ++i) {
    sum += tensors.output[i] * tensors.output_error[i];
  }
  return sum;
}

void ExpectGradient(Kernel<double>& kernel,
                    Tensors<double>& tensors,
                    std::vector<double>& values,
                    const std::vector<double>& gradient) {
  constexpr double kStep = 1e-5;
  ASSERT_EQ(values.size(), gradient.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    values[i] = value + kStep;
    const double above = Objective(kernel, tensors);
    values[i] = value - kStep;
    const double below = Objective(kernel, tensors);
    values[i] = value;
    ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-7) << "element " << i;
  }
}

void ExpectGradients(const Spec& spec) {
  SCOPED_TRACE(Describe(spec));
  const auto kernel = MakeReferenceKernel<double>(spec);
  Tensors<double> tensors(spec);
  tensors.Randomise(21);
  tensors.Run(*kernel);
  for (std::size_t k = 0; k < tensors.inputs.size(); ++k) {
    ExpectGradient(*kernel, tensors, tensors.inputs[k], tensors.input_errors[k]);
  }
  ExpectGradient(*kernel, tensors, tensors.weight, tensors.weight_gradient);
  ExpectGradient(*kernel, tensors, tensors.bias, tensors.bias_gradient);
}

TEST(FiniteDifferenceTest, Convolutions) {
  model::Layer layer = LayerOf(LayerKind::kConv2d);
  layer.channels = 3;
  layer.kernel = {3, 2};
  ExpectGradients(MakeSpec(layer, {{2, 5, 4}}, 2));
  layer.stride = {2, 3};
  layer.padding = {2, 1};
  ExpectGradients(MakeSpec(layer, {{2, 5, 4}}, 2));
  layer.dilation = {1, 2};
  ExpectGradients(MakeSpec(layer, {{1, 4, 5}}, 1));
  layer.channels = 4;
  layer.groups = 2;
  ExpectGradients(MakeSpec(layer, {{6, 4, 5}}, 1));
}

TEST(FiniteDifferenceTest, Pools) {
  for (const LayerKind kind : {LayerKind::kMaxPool, LayerKind::kAveragePool}) {
    model::Layer layer = LayerOf(kind);
    layer.kernel = {2, 2};
    layer.stride = {2, 2};
    ExpectGradients(MakeSpec(layer, {{3, 5, 4}}, 2));
    layer.kernel = {3, 2};
    layer.stride = {1, 2};
    layer.padding = {1, 1};
    ExpectGradients(MakeSpec(layer, {{2, 4, 5}}, 2));
  }
}

TEST(FiniteDifferenceTest, FullyConnected) {
  model::Layer layer = LayerOf(LayerKind::kFullyConnected);
  layer.channels = 4;
  ExpectGradients(MakeSpec(layer, {{7}}, 3));
}

TEST(FiniteDifferenceTest, ElementwiseFunctions) {
  for (const LayerKind kind : {LayerKind::kRelu, LayerKind::kSigmoid, LayerKind::kTanh}) {
    ExpectGradients(MakeSpec(LayerOf(kind), {{2, 3, 3}}, 2));
  }
}

TEST(FiniteDifferenceTest, DropoutWithItsSeed) {
  model::Layer layer = LayerOf(LayerKind::kDropout);
  layer.dropout_rate = 0.4;
  for (const MapLayout layout : {MapLayout::kChannelsFirst, MapLayout::kChannelsLast}) {
    ExpectGradients(MakeSpec(layer, {{2, 3, 3}}, 2, layout));
  }
}

TEST(FiniteDifferenceTest, FlattenAddAndConcatInBothLayouts) {
  for (const MapLayout layout : {MapLayout::kChannelsFirst, MapLayout::kChannelsLast}) {
    ExpectGradients(MakeSpec(LayerOf(LayerKind::kFlatten), {{3, 2, 4}}, 2, layout));
    ExpectGradients(
        MakeSpec(LayerOf(LayerKind::kAdd), {{3, 2, 2}, {3, 2, 2}, {3, 2, 2}}, 2, layout));
    ExpectGradients(MakeSpec(LayerOf(LayerKind::kConcat), {{3, 2, 2}, {1, 2, 2}}, 2, layout));
    ExpectGradients(MakeSpec(LayerOf(LayerKind::kConcat), {{3}, {5}}, 2, layout));
  }
}

}  // namespace
}  // namespace adamant::kernels
