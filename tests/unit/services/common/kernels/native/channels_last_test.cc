// Own kernels for few examples with the channels last, on every instruction set of this machine,
// against the reference in double precision on random and odd shapes.

#include "services/common/kernels/native/channels_last.h"

#include "services/common/kernels/backend.h"
#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/pool.h"
#include "tests/unit/services/common/kernels/reference/reference_comparison.h"

namespace adamant::kernels {
namespace {

using model::LayerKind;

class ChannelsLastTest : public testing::TestWithParam<std::string> {
 protected:
  ChannelsLastTest() : isa_(GetParam()) {}

  /// Two steps, since what a kernel keeps must not show; the spec is channels first.
  static void Compare(const Spec& spec, std::uint64_t seed, const Tolerances& tolerances) {
    SCOPED_TRACE(Describe(spec) + " seed " + std::to_string(seed));
    const auto kernel = Make(spec);
    for (const std::uint64_t step : {seed, seed + 1000}) {
      Tensors<float> tensors(spec);
      tensors.Randomise(step);
      const Expected expected(spec, tensors);
      MakeChannelsLast(spec, tensors);
      tensors.Run(*kernel);
      MakeChannelsFirst(spec, tensors);
      expected.ExpectNear(tensors, tolerances);
    }
  }

  static std::unique_ptr<Kernel<float>> Make(Spec spec) {
    spec.layout = spec.input_layout = MapLayout::kChannelsLast;
    return spec.layer.kind == LayerKind::kConv2d ? internal::MakeConv2dChannelsLast(spec)
                                                 : internal::MakePool(spec);
  }

  const ScopedIsa isa_;
};

INSTANTIATE_TEST_SUITE_P(Isas, ChannelsLastTest, testing::ValuesIn(SupportedIsas()));

TEST_P(ChannelsLastTest, RandomConvolutionsMatchTheReference) {
  for (std::uint64_t seed = 0; seed < 220; ++seed) {
    Rng rng(seed);
    model::Layer layer = LayerOf(LayerKind::kConv2d);
    layer.groups = rng.Below(3) == 0 ? Draw(rng, 2, 3) : 1;
    layer.channels = layer.groups * Draw(rng, 1, rng.Below(3) == 0 ? 70 : 20);
    const std::int64_t inputs = Draw(rng, 1, rng.Below(3) == 0 ? 40 : 6);
    const Shape input = DrawWindow(rng, layer, layer.groups * inputs);
    const Spec spec = MakeSpec(layer, {input}, Draw(rng, 1, 4));
    Compare(spec, seed, OfSums(spec));
  }
}

TEST_P(ChannelsLastTest, ExtremeConvolutionsMatchTheReference) {
  for (const std::int64_t batch : {1, 3}) {
    for (const Spec& spec : ExtremeConvolutions(batch)) {
      Compare(spec, 1, OfSums(spec));
    }
  }
}

TEST_P(ChannelsLastTest, ConvolutionsOfKnownNetsMatchTheReference) {
  for (const std::int64_t batch : {1, 3}) {
    for (const Spec& spec : ConvolutionsOfKnownNets(batch)) {
      Compare(spec, 2, OfSums(spec));
    }
  }
}

TEST_P(ChannelsLastTest, PoolsMatchTheReference) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    model::Layer layer = LayerOf(seed % 2 == 0 ? LayerKind::kMaxPool : LayerKind::kAveragePool);
    const Shape input = DrawWindow(rng, layer, Draw(rng, 1, 40));
    Compare(MakeSpec(layer, {input}, Draw(rng, 1, 4)), seed, Slack(1e-5));
  }
}

TEST_P(ChannelsLastTest, FewExamplesOfFewChannelsGetThem) {
  const auto backend = *MakeOneDnnBackend();
  const auto name = [&](std::int64_t batch, std::int64_t inputs, std::int64_t outputs) {
    model::Layer layer = LayerOf(LayerKind::kConv2d);
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

  const auto pool = [&](std::int64_t batch) {
    model::Layer layer = LayerOf(LayerKind::kMaxPool);
    layer.kernel = layer.stride = {2, 2};
    return (*backend->Make(MakeSpec(layer, {{10, 24, 24}}, batch, MapLayout::kChannelsLast)))
        ->name();
  };
  EXPECT_EQ(pool(7), own);
  EXPECT_NE(pool(8), own);
}

TEST_P(ChannelsLastTest, ErrorsThatNobodyAsksForAreNotWritten) {
  for (const LayerKind kind : {LayerKind::kConv2d, LayerKind::kMaxPool}) {
    model::Layer layer = LayerOf(kind);
    layer.kernel = {2, 2};
    layer.channels = 2;
    const Spec spec = MakeSpec(layer, {{2, 3, 3}}, 2);
    Tensors<float> tensors(spec);
    tensors.Randomise(3);
    Operands<float> view = tensors.View();
    float* const nothing = nullptr;
    view.input_errors = {&nothing, 1};
    const auto kernel = Make(spec);
    kernel->Forward(view);
    kernel->Backward(view);
  }
}

}  // namespace
}  // namespace adamant::kernels
