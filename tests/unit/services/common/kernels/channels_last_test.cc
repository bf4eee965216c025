// Own kernels for few examples with the channels last, on every instruction set of this machine,
// against the reference in double precision on random and odd shapes.

#include "services/common/kernels/channels_last.h"

#include "services/common/kernels/backend.h"
#include "services/common/kernels/isa.h"
#include "tests/unit/services/common/kernels/reference_comparison.h"

namespace adamant::kernels {
namespace {

class ChannelsLastTest : public testing::TestWithParam<std::string> {
 protected:
  ChannelsLastTest() : isa_(GetParam()) {}

  /// Two steps, since what a kernel keeps must not show; the spec is channels first.
  static void Compare(const Spec& spec, std::uint64_t seed) {
    SCOPED_TRACE(Describe(spec) + " seed " + std::to_string(seed));
    Spec last = spec;
    last.layout = last.input_layout = MapLayout::kChannelsLast;
    const auto kernel = internal::MakeConv2dChannelsLast(last);
    for (const std::uint64_t step : {seed, seed + 1000}) {
      Tensors<float> tensors(spec);
      tensors.Randomise(step);
      const Tensors<double> expected = Reference(spec, tensors, false);
      const Tensors<double> magnitudes = Reference(spec, tensors, true);
      tensors.inputs[0] = ToChannelsLast(spec.batch, spec.inputs[0], tensors.inputs[0]);
      tensors.output_error = ToChannelsLast(spec.batch, spec.output, tensors.output_error);
      kernel->Forward(tensors.View());
      kernel->Backward(tensors.View());
      ExpectNear(spec, tensors, expected, magnitudes);
    }
  }

  static void ExpectNear(const Spec& spec,
                         const Tensors<float>& result,
                         const Tensors<double>& expected,
                         const Tensors<double>& magnitudes) {
    const Tolerances tolerances = OfSums(spec);
    kernels::ExpectNear("output",
                        ToChannelsFirst(spec.batch, spec.output, result.output),
                        expected.output,
                        magnitudes.output,
                        tolerances.forward);
    kernels::ExpectNear("input error",
                        ToChannelsFirst(spec.batch, spec.inputs[0], result.input_errors[0]),
                        expected.input_errors[0],
                        magnitudes.input_errors[0],
                        tolerances.input_error);
    kernels::ExpectNear("weight gradient",
                        result.weight_gradient,
                        expected.weight_gradient,
                        magnitudes.weight_gradient,
                        tolerances.weight_gradient);
    kernels::ExpectNear("bias gradient",
                        result.bias_gradient,
                        expected.bias_gradient,
                        magnitudes.bias_gradient,
                        tolerances.bias_gradient);
  }

  const ScopedIsa isa_;
};

INSTANTIATE_TEST_SUITE_P(Isas, ChannelsLastTest, testing::ValuesIn(SupportedIsas()));

TEST_P(ChannelsLastTest, RandomConvolutionsMatchTheReference) {
  for (std::uint64_t seed = 0; seed < 220; ++seed) {
    Rng rng(seed);
    model::Layer layer = LayerOf(model::LayerKind::kConv2d);
    layer.groups = rng.Below(3) == 0 ? Draw(rng, 2, 3) : 1;
    layer.channels = layer.groups * Draw(rng, 1, rng.Below(3) == 0 ? 70 : 20);
    const std::int64_t inputs = Draw(rng, 1, rng.Below(3) == 0 ? 40 : 6);
    const Shape input = DrawWindow(rng, layer, layer.groups * inputs);
    Compare(MakeSpec(layer, {input}, Draw(rng, 1, 4)), seed);
  }
}

TEST_P(ChannelsLastTest, ExtremeConvolutionsMatchTheReference) {
  struct Case {
    std::int64_t batch;
    Shape input;
    std::int64_t channels;
    model::Extent2d kernel;
    model::Extent2d stride;
    model::Extent2d padding;
    std::int64_t groups;
  };
  const Case cases[] = {
      {1, {1, 1, 1}, 1, {1, 1}, {1, 1}, {0, 0}, 1},      // a single product
      {1, {1, 1, 90}, 1, {1, 7}, {1, 1}, {0, 3}, 1},     // a row
      {2, {3, 90, 1}, 5, {9, 1}, {2, 1}, {4, 0}, 1},     // a column
      {1, {5, 6, 7}, 4, {6, 7}, {1, 1}, {0, 0}, 1},      // a kernel as large as its input
      {1, {2, 3, 3}, 3, {3, 3}, {50, 50}, {2, 2}, 1},    // a stride beyond the input
      {3, {2, 1, 1}, 3, {5, 5}, {1, 1}, {4, 4}, 1},      // more padding than input
      {1, {33, 3, 3}, 33, {3, 3}, {1, 1}, {1, 1}, 33},   // one map per group
      {1, {7, 4, 4}, 21, {3, 3}, {1, 1}, {1, 1}, 7},     // three maps per group
      {2, {65, 1, 2}, 67, {1, 1}, {1, 1}, {0, 0}, 1},    // many channels, no multiple of a vector
      {1, {3, 20, 20}, 17, {11, 11}, {4, 4}, {5, 5}, 1}  // a wide kernel
  };
  for (const Case& c : cases) {
    model::Layer layer = LayerOf(model::LayerKind::kConv2d);
    layer.channels = c.channels;
    layer.kernel = c.kernel;
    layer.stride = c.stride;
    layer.padding = c.padding;
    layer.groups = c.groups;
    Compare(MakeSpec(layer, {c.input}, c.batch), 1);
  }
}

TEST_P(ChannelsLastTest, ConvolutionsOfKnownNetsMatchTheReference) {
  const std::pair<Shape, std::int64_t> shapes[] = {
      {{1, 28, 28}, 10}, {{10, 12, 12}, 20}, {{3, 16, 16}, 32}, {{32, 8, 8}, 64}};
  for (const auto& [input, channels] : shapes) {
    model::Layer layer = LayerOf(model::LayerKind::kConv2d);
    layer.channels = channels;
    layer.kernel = {5, 5};
    layer.padding = input[0] % 2 == 1 ? model::Extent2d{2, 2} : model::Extent2d{0, 0};
    Compare(MakeSpec(layer, {input}, 1), 1);
    Compare(MakeSpec(layer, {input}, 3), 2);
  }
}

TEST_P(ChannelsLastTest, FewExamplesOfFewChannelsGetThem) {
  const auto backend = *MakeOneDnnBackend();
  const auto name = [&](std::int64_t batch, std::int64_t inputs, std::int64_t outputs) {
    model::Layer layer = LayerOf(model::LayerKind::kConv2d);
    layer.kernel = {5, 5};
    layer.channels = outputs;
    const auto kernel =
        backend->Make(MakeSpec(layer, {{inputs, 12, 12}}, batch, MapLayout::kChannelsLast));
    return (*kernel)->name();
  };
  const std::string own = "own channels last " + GetParam();
  EXPECT_EQ(name(1, 1, 10), own);  // adam-mnist
  EXPECT_EQ(name(1, 10, 20), own);
  EXPECT_EQ(name(7, 10, 20), own);
  EXPECT_NE(name(8, 10, 20), own);  // blocks of examples are better, or oneDNN
  EXPECT_NE(name(1, 32, 64), own);  // oneDNN's vectors are full
}

TEST_P(ChannelsLastTest, ErrorsThatNobodyAsksForAreNotWritten) {
  model::Layer layer = LayerOf(model::LayerKind::kConv2d);
  layer.kernel = {2, 2};
  layer.channels = 2;
  const Spec spec = MakeSpec(layer, {{2, 3, 3}}, 2, MapLayout::kChannelsLast);
  Tensors<float> tensors(spec);
  tensors.Randomise(3);
  Operands<float> view = tensors.View();
  float* const nothing = nullptr;
  view.input_errors = {&nothing, 1};
  const auto kernel = internal::MakeConv2dChannelsLast(spec);
  kernel->Forward(view);
  kernel->Backward(view);
}

}  // namespace
}  // namespace adamant::kernels
