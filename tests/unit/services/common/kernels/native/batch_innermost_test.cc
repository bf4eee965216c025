// Own kernels for maps with the batch innermost, on every instruction set of this machine, against
// the reference in double precision on random and odd shapes.

#include "services/common/kernels/native/batch_innermost.h"

#include <gmock/gmock.h>

#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/pool.h"
#include "tests/unit/services/common/kernels/reference/reference_comparison.h"

namespace adamant::kernels {
namespace {

using model::LayerKind;

/// [batch, features] to [batch / kLanes, features, kLanes].
std::vector<float> ToBlocks(std::int64_t batch, const std::vector<float>& rows) {
  const std::int64_t features = static_cast<std::int64_t>(rows.size()) / batch;
  std::vector<float> to(rows.size());
  Transpose(batch / kLanes, kLanes, features, rows.data(), to.data());
  return to;
}

std::vector<float> FromBlocks(std::int64_t batch, const std::vector<float>& blocks) {
  const std::int64_t features = static_cast<std::int64_t>(blocks.size()) / batch;
  std::vector<float> to(blocks.size());
  Transpose(batch / kLanes, features, kLanes, blocks.data(), to.data());
  return to;
}

std::unique_ptr<Kernel<float>> Make(Spec spec, std::int64_t batch) {
  spec.layout = spec.input_layout = MapLayout::kBatchInnermost;
  spec.batch = batch;
  return spec.layer.kind == LayerKind::kConv2d ? internal::MakeConv2dBatchInnermost(spec)
                                               : internal::MakePool(spec);
}

/// `view` moved on to the block of examples that begins with `first`.
Operands<float> BlockOf(const Spec& spec,
                        std::int64_t first,
                        Operands<float> view,
                        const float*& input,
                        float*& error) {
  const std::int64_t in = *ElementCount(spec.inputs[0]);
  const std::int64_t out = *ElementCount(spec.output);
  input = view.inputs[0] + first * in;
  error = view.input_errors[0] + first * in;
  view.inputs = {&input, 1};
  view.input_errors = {&error, 1};
  view.output += first * out;
  view.output_error += first * out;
  view.first = first == 0;
  return view;
}

/// Forward with all blocks, then Backward, as a training step does it.
void RunByBlock(const Spec& spec, Kernel<float>& kernel, const Operands<float>& view) {
  const float* input = nullptr;
  float* error = nullptr;
  const auto block = [&](std::int64_t first, std::vector<std::uint8_t>& kept) {
    kept.resize(static_cast<std::size_t>(kernel.KeptBytes()));
    Operands<float> operands = BlockOf(spec, first, view, input, error);
    operands.kept = kept.data();
    return operands;
  };
  std::vector<std::vector<std::uint8_t>> kept(static_cast<std::size_t>(spec.batch / kLanes));
  for (std::int64_t first = 0; first < spec.batch; first += kLanes) {
    kernel.Forward(block(first, kept[static_cast<std::size_t>(first / kLanes)]));
  }
  for (std::int64_t first = 0; first < spec.batch; first += kLanes) {
    kernel.Backward(block(first, kept[static_cast<std::size_t>(first / kLanes)]));
  }
}

class BatchInnermostTest : public testing::TestWithParam<std::string> {
 protected:
  BatchInnermostTest() : isa_(GetParam()) {}

  /// Compares one call with the whole batch, and calls with a block each; the spec is channels
  /// first.
  static void Compare(const Spec& spec, std::uint64_t seed, const Tolerances& tolerances) {
    SCOPED_TRACE(Describe(spec) + " seed " + std::to_string(seed));
    Tensors<float> tensors(spec);
    tensors.Randomise(seed);
    const Expected expected(spec, tensors);
    tensors.inputs[0] = ToBlocks(spec.batch, tensors.inputs[0]);
    tensors.output_error = ToBlocks(spec.batch, tensors.output_error);
    Tensors<float> by_block = tensors;

    const auto whole = Make(spec, spec.batch);
    tensors.Run(*whole);
    MakeRows(spec, tensors);
    expected.ExpectNear(tensors, tolerances);
    if (spec.batch > kLanes) {
      RunByBlock(spec, *Make(spec, kLanes), by_block.View());
      MakeRows(spec, by_block);
      expected.ExpectNear(by_block, tolerances);
    }
  }

  /// What was written, back in the order of the spec.
  static void MakeRows(const Spec& spec, Tensors<float>& result) {
    result.output = FromBlocks(spec.batch, result.output);
    result.input_errors[0] = FromBlocks(spec.batch, result.input_errors[0]);
  }

  const ScopedIsa isa_;
};

INSTANTIATE_TEST_SUITE_P(Isas, BatchInnermostTest, testing::ValuesIn(SupportedIsas()));

TEST_P(BatchInnermostTest, RandomConvolutionsMatchTheReference) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    model::Layer layer = LayerOf(LayerKind::kConv2d);
    layer.groups = rng.Below(3) == 0 ? Draw(rng, 2, 3) : 1;
    layer.channels = layer.groups * Draw(rng, 1, rng.Below(3) == 0 ? 34 : 9);
    const Shape input = DrawWindow(rng, layer, layer.groups * Draw(rng, 1, 7));
    const Spec spec = MakeSpec(layer, {input}, kLanes * Draw(rng, 1, 2));
    Compare(spec, seed, OfSums(spec));
  }
}

TEST_P(BatchInnermostTest, ExtremeConvolutionsMatchTheReference) {
  for (const Spec& spec : ExtremeConvolutions(kLanes)) {
    Compare(spec, 1, OfSums(spec));
  }
}

TEST_P(BatchInnermostTest, ConvolutionsOfKnownNetsMatchTheReference) {
  for (const Spec& spec : ConvolutionsOfKnownNets(kLanes)) {
    Compare(spec, 1, OfSums(spec));
  }
}

TEST_P(BatchInnermostTest, PoolsMatchTheReference) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    model::Layer layer = LayerOf(seed % 2 == 0 ? LayerKind::kMaxPool : LayerKind::kAveragePool);
    Shape input = DrawWindow(rng, layer, Draw(rng, 1, 4));
    if (rng.Below(3) == 0) {  // windows that share nothing and leave nothing out
      layer.kernel = layer.stride = {Draw(rng, 1, 3), Draw(rng, 1, 3)};
      layer.padding = {0, 0};
      input[1] = layer.kernel.height * Draw(rng, 1, 5);
      input[2] = layer.kernel.width * Draw(rng, 1, 5);
    }
    const Spec spec = MakeSpec(layer, {input}, kLanes * Draw(rng, 1, 2));
    Compare(spec, seed, Slack(1e-5));
  }
}

TEST_P(BatchInnermostTest, TheLargestWindowIsThatWhosePlacesFitIntoAByte) {
  model::Layer layer = LayerOf(LayerKind::kMaxPool);
  layer.kernel = {5, 51};
  ASSERT_EQ(layer.kernel.height * layer.kernel.width, internal::kLargestMaxPool);
  Spec spec = MakeSpec(layer, {{2, 6, 52}}, kLanes);
  EXPECT_TRUE(internal::ServesPool(spec));
  Compare(spec, 1, Slack(1e-5));

  spec.layer.kernel = {5, 52};
  EXPECT_FALSE(internal::ServesPool(spec));
  spec.layer.kind = LayerKind::kAveragePool;
  EXPECT_TRUE(internal::ServesPool(spec));
  spec.layer.kind = LayerKind::kMaxPool;
  spec.training = false;
  EXPECT_TRUE(internal::ServesPool(spec));
}

model::Layer PoolOf(LayerKind kind, std::int64_t size, std::int64_t stride) {
  model::Layer layer = LayerOf(kind);
  layer.kernel = {size, size};
  layer.stride = {stride, stride};
  return layer;
}

TEST_P(BatchInnermostTest, EqualInputsGiveTheGradientToTheFirstAndNoNumberSpreads) {
  const Spec spec = MakeSpec(PoolOf(LayerKind::kMaxPool, 2, 2), {{1, 2, 4}}, kLanes);
  Tensors<float> tensors(spec);
  tensors.Randomise(1);
  std::fill(tensors.inputs[0].begin(), tensors.inputs[0].end(), 3.0f);
  tensors.inputs[0][6 * kLanes + 5] = std::numeric_limits<float>::quiet_NaN();
  const auto kernel = Make(spec, kLanes);
  tensors.Run(*kernel);
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    const std::int64_t chosen[] = {0, lane == 5 ? 6 : 2};
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int64_t window = i % 4 / 2;
      EXPECT_EQ(tensors.input_errors[0][i * kLanes + lane],
                i == chosen[window] ? tensors.output_error[window * kLanes + lane] : 0);
    }
    EXPECT_EQ(std::isnan(tensors.output[kLanes + lane]), lane == 5);
  }
}

TEST_P(BatchInnermostTest, AMaxPoolWithItsReluIsTheTwoInARow) {
  for (const std::int64_t stride : {1, 2, 3}) {
    Spec spec = MakeSpec(PoolOf(LayerKind::kMaxPool, 2, stride), {{3, 7, 8}}, 2 * kLanes);
    spec.layout = spec.input_layout = MapLayout::kBatchInnermost;
    Tensors<float> fused(spec);
    fused.Randomise(static_cast<std::uint64_t>(stride));
    for (float& x : fused.inputs[0]) {
      x -= 1;  // so that some windows have nothing above 0
    }
    Tensors<float> apart = fused;
    spec.relu = true;
    const auto both = internal::MakePool(spec);
    fused.Run(*both);

    spec.relu = false;
    const auto pool = internal::MakePool(spec);
    apart.kept.resize(static_cast<std::size_t>(pool->KeptBytes()));
    pool->Forward(apart.View());
    for (std::size_t i = 0; i < apart.output.size(); ++i) {
      if (apart.output[i] <= 0) {
        apart.output[i] = apart.output_error[i] = 0;
      }
    }
    EXPECT_THAT(apart.output, testing::Contains(0.0f));
    pool->Backward(apart.View());
    EXPECT_EQ(fused.output, apart.output);
    EXPECT_EQ(fused.input_errors[0], apart.input_errors[0]);
  }
}

TEST_P(BatchInnermostTest, ErrorsThatNobodyAsksForAreNotWritten) {
  for (const LayerKind kind : {LayerKind::kConv2d, LayerKind::kMaxPool, LayerKind::kAveragePool}) {
    model::Layer layer = PoolOf(kind, 2, 1);
    layer.channels = 2;
    const Spec spec = MakeSpec(layer, {{2, 3, 3}}, kLanes);
    Tensors<float> tensors(spec);
    tensors.Randomise(3);
    Operands<float> view = tensors.View();
    float* const nothing = nullptr;
    view.input_errors = {&nothing, 1};
    const auto kernel = Make(spec, kLanes);
    kernel->Forward(view);
    kernel->Backward(view);
  }
}

}  // namespace
}  // namespace adamant::kernels
