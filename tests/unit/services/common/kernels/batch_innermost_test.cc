// Own kernels for maps with the batch innermost, on every instruction set of this machine, against
// the reference in double precision on random and odd shapes.

#include "services/common/kernels/batch_innermost.h"

#include "services/common/kernels/isa.h"
#include "tests/unit/services/common/kernels/reference_comparison.h"

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

class BatchInnermostTest : public testing::TestWithParam<std::string> {
 protected:
  BatchInnermostTest() : isa_(GetParam()) {}

  static std::unique_ptr<Kernel<float>> Make(Spec spec) {
    spec.layout = MapLayout::kBatchInnermost;
    return internal::MakeConv2dBatchInnermost(spec);
  }

  /// Compares Forward and Backward of the whole batch in one call; the spec is channels first.
  static void Compare(const Spec& spec, std::uint64_t seed, const Tolerances& tolerances) {
    SCOPED_TRACE(Describe(spec) + " seed " + std::to_string(seed));
    Tensors<float> tensors(spec);
    tensors.Randomise(seed);
    const Tensors<double> expected = Reference(spec, tensors, false);
    const Tensors<double> magnitudes = Reference(spec, tensors, true);
    tensors.inputs[0] = ToBlocks(spec.batch, tensors.inputs[0]);
    tensors.output_error = ToBlocks(spec.batch, tensors.output_error);
    const auto kernel = Make(spec);
    kernel->Forward(tensors.View());
    kernel->Backward(tensors.View());
    ExpectNear("output",
               FromBlocks(spec.batch, tensors.output),
               expected.output,
               magnitudes.output,
               tolerances.forward);
    ExpectNear("input error",
               FromBlocks(spec.batch, tensors.input_errors[0]),
               expected.input_errors[0],
               magnitudes.input_errors[0],
               tolerances.input_error);
    ExpectNear("weight gradient",
               tensors.weight_gradient,
               expected.weight_gradient,
               magnitudes.weight_gradient,
               tolerances.weight_gradient);
    ExpectNear("bias gradient",
               tensors.bias_gradient,
               expected.bias_gradient,
               magnitudes.bias_gradient,
               tolerances.bias_gradient);
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

}  // namespace
}  // namespace adamant::kernels
