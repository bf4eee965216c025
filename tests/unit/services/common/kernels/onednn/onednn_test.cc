// The kernels of oneDNN against the reference in double precision, on random and extreme shapes.
// ONEDNN_MAX_CPU_ISA limits the instruction set: ctest runs this at each that the processor has.

#include <oneapi/dnnl/dnnl.h>

#include <cstdlib>
#include <functional>
#include <string_view>

#include "services/common/kernels/backend.h"
#include "services/common/kernels/thread_mode.h"
#include "tests/unit/services/common/kernels/reference/reference_comparison.h"

namespace adamant::kernels {
namespace {

using model::LayerKind;

/// More examples than own kernels for maps with the channels last are made for.
constexpr std::int64_t kManyExamples = 8;

/// Of each kind of layer that oneDNN has kernels for.
constexpr int kShapes = 200;

class OneDnnTest : public testing::Test {
 protected:
  OneDnnTest() : backend_(*MakeOneDnnBackend()) {}

  /// Compares Forward and Backward; the spec is channels first, as the reference wants it. Returns
  /// whether the kernel was oneDNN's; some shapes have kernels of our own.
  bool Compare(const Spec& spec, std::uint64_t seed, const Tolerances& tolerances) {
    SCOPED_TRACE(Describe(spec) + " seed " + std::to_string(seed));
    Spec last = spec;
    last.layout = last.input_layout = MapLayout::kChannelsLast;
    auto kernel = backend_->Make(last);
    if (!kernel.ok()) {
      ADD_FAILURE() << kernel.status();
      return false;
    }
    Tensors<float> tensors(spec);
    tensors.Randomise(seed);
    const Expected expected(spec, tensors);
    MakeChannelsLast(spec, tensors);
    tensors.Run(**kernel);
    MakeChannelsFirst(spec, tensors);
    tensors.weight_gradient = tensors.WeightGradient(**kernel);
    expected.ExpectNear(tensors, tolerances);
    return (*kernel)->name().starts_with("oneDNN");
  }

  using Drawn = std::function<Spec(Rng& rng)>;
  using Allowed = std::function<Tolerances(const Spec& spec)>;

  /// Compares on random shapes until oneDNN had kShapes of them.
  void CompareMany(const Drawn& draw, const Allowed& tolerances) {
    int compared = 0;
    for (std::uint64_t seed = 0; compared < kShapes && !HasFatalFailure(); ++seed) {
      ASSERT_LT(seed, 20 * kShapes) << "only " << compared << " of them had a kernel of oneDNN";
      Rng rng(seed);
      const Spec spec = draw(rng);
      compared += Compare(spec, seed, tolerances(spec)) ? 1 : 0;
    }
  }

  const ThreadMode mode_;
  const std::unique_ptr<Backend> backend_;
};

TEST_F(OneDnnTest, TheInstructionSetIsTheOneThatIsAskedFor) {
  const char* const limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (limit == nullptr) {
    return;  // the processor's best
  }
  const bool wide = std::string_view(limit) == "AVX512_CORE";
  const auto wanted = wide ? dnnl_cpu_isa_avx512_core : dnnl_cpu_isa_avx2;
  ASSERT_TRUE(wide || std::string_view(limit) == "AVX2") << limit;
  if (dnnl_get_effective_cpu_isa() < wanted) {
    GTEST_SKIP() << "this processor has no " << limit;
  }
  EXPECT_EQ(dnnl_get_effective_cpu_isa(), wanted);
}

TEST_F(OneDnnTest, RandomConvolutionsMatchTheReference) {
  CompareMany(
      [](Rng& rng) {
        model::Layer layer = LayerOf(LayerKind::kConv2d);
        layer.groups = rng.Below(3) == 0 ? Draw(rng, 2, 4) : 1;
        layer.channels = layer.groups * Draw(rng, 1, 20);
        const Shape input = DrawWindow(rng, layer, layer.groups * Draw(rng, 1, 18));
        return MakeSpec(layer, {input}, Draw(rng, kManyExamples, kManyExamples + 3));
      },
      OfSums);
}

TEST_F(OneDnnTest, ExtremeConvolutionsMatchTheReference) {
  for (const Spec& spec : ExtremeConvolutions(kManyExamples + 1)) {
    Compare(spec, 1, OfSums(spec));
  }
}

TEST_F(OneDnnTest, ConvolutionsOfKnownNetsMatchTheReference) {
  for (const Spec& spec : ConvolutionsOfKnownNets(kManyExamples + 1)) {
    Compare(spec, 1, OfSums(spec));
  }
}

TEST_F(OneDnnTest, PoolsMatchTheReference) {
  for (const LayerKind kind : {LayerKind::kMaxPool, LayerKind::kAveragePool}) {
    CompareMany(
        [kind](Rng& rng) {
          model::Layer layer = LayerOf(kind);
          const Shape input = DrawWindow(rng, layer, Draw(rng, 1, 40));
          return MakeSpec(layer, {input}, Draw(rng, kManyExamples, kManyExamples + 3));
        },
        [](const Spec&) { return Slack(1e-5); });
  }
}

TEST_F(OneDnnTest, RandomFullyConnectedLayersMatchTheReference) {
  CompareMany(
      [](Rng& rng) {
        model::Layer layer = LayerOf(LayerKind::kFullyConnected);
        layer.channels = Draw(rng, 1, 130);
        return MakeSpec(layer, {{Draw(rng, 1, 300)}}, Draw(rng, 1, 70));
      },
      OfSums);
}

TEST_F(OneDnnTest, FullyConnectedLayersMatchTheReference) {
  const std::int64_t sizes[][3] = {
      {1, 1, 1}, {1, 320, 400}, {7, 1, 33}, {32, 400, 10}, {5, 1000, 3}, {129, 17, 65}};
  for (const auto& [batch, in, out] : sizes) {
    model::Layer layer = LayerOf(LayerKind::kFullyConnected);
    layer.channels = out;
    const Spec spec = MakeSpec(layer, {{in}}, batch);
    Compare(spec, 5, OfSums(spec));
  }
}

TEST_F(OneDnnTest, ElementwiseFunctionsMatchTheReference) {
  for (const LayerKind kind : {LayerKind::kRelu, LayerKind::kSigmoid, LayerKind::kTanh}) {
    for (const std::int64_t size : {1, 3, 15, 17, 1000}) {
      Compare(MakeSpec(LayerOf(kind), {{size}}, 3), 2, Slack(2e-6));
    }
    Compare(MakeSpec(LayerOf(kind), {{3, 5, 7}}, 3), 2, Slack(2e-6));
  }
}

TEST_F(OneDnnTest, ElementwiseFunctionsMatchTheReferenceOnRandomShapes) {
  for (const LayerKind kind : {LayerKind::kSigmoid, LayerKind::kTanh}) {
    CompareMany(
        [kind](Rng& rng) {
          const bool map = rng.Below(2) == 0;
          const Shape shape = map ? Shape{Draw(rng, 1, 40), Draw(rng, 1, 9), Draw(rng, 1, 9)}
                                  : Shape{Draw(rng, 1, 700)};
          return MakeSpec(LayerOf(kind), {shape}, Draw(rng, 1, 12));
        },
        [](const Spec&) { return Slack(2e-6); });
  }
}

TEST_F(OneDnnTest, ElementwiseFunctionsWorkInPlace) {
  for (const LayerKind kind : {LayerKind::kRelu, LayerKind::kSigmoid, LayerKind::kTanh}) {
    Spec spec = MakeSpec(LayerOf(kind), {{100}}, 2, MapLayout::kChannelsLast);
    auto kernel = backend_->Make(spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    Tensors<float> apart(spec);
    apart.Randomise(3);
    Tensors<float> shared = apart;
    apart.Run(**kernel);
    Operands<float> view = shared.View();
    view.output = shared.inputs[0].data();
    float* const error = shared.output_error.data();
    view.input_errors = {&error, 1};
    (*kernel)->Forward(view);
    (*kernel)->Backward(view);
    EXPECT_EQ(shared.inputs[0], apart.output);
    EXPECT_EQ(shared.output_error, apart.input_errors[0]);
  }
}

TEST_F(OneDnnTest, ErrorsThatNobodyAsksForAreNotWritten) {
  model::Layer layer = LayerOf(LayerKind::kConv2d);
  layer.channels = 4;
  for (const LayerKind kind : {LayerKind::kConv2d, LayerKind::kMaxPool, LayerKind::kRelu}) {
    layer.kind = kind;
    const Spec spec = MakeSpec(layer, {{4, 3, 3}}, 2, MapLayout::kChannelsLast);
    auto kernel = backend_->Make(spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    Tensors<float> tensors(spec);
    tensors.Randomise(3);
    Operands<float> view = tensors.View();
    float* const nothing = nullptr;
    view.input_errors = {&nothing, 1};
    (*kernel)->Forward(view);
    (*kernel)->Backward(view);
  }
}

}  // namespace
}  // namespace adamant::kernels
