// Fully connected layers that hand over their gradient, ours on every instruction set of this
// machine, against the reference in double precision on random and odd shapes.

#include "services/common/kernels/native/fully_connected.h"

#include <memory>
#include <string>
#include <vector>

#include "services/common/kernels/isa.h"
#include "tests/unit/services/common/kernels/reference/reference_comparison.h"

namespace adamant::kernels {
namespace {

Spec SpecOf(std::int64_t batch, std::int64_t in, std::int64_t out) {
  model::Layer layer = LayerOf(model::LayerKind::kFullyConnected);
  layer.channels = out;
  return MakeSpec(layer, {{in}}, batch);
}

struct Implementation {
  std::string name;
  std::string isa;
  std::unique_ptr<Kernel<float>> (*make)(const Spec&);
};

std::vector<Implementation> Implementations() {
  std::vector<Implementation> all;
  for (const std::string& isa : SupportedIsas()) {
    all.push_back({"Own" + isa, isa, internal::MakeFullyConnectedSmallBatch});
  }
  all.push_back({"OneDnn", SupportedIsas().front(), internal::MakeFullyConnectedOneDnn});
  return all;
}

std::string NameOf(const testing::TestParamInfo<Implementation>& info) { return info.param.name; }

class FullyConnectedTest : public testing::TestWithParam<Implementation> {
 protected:
  FullyConnectedTest() : isa_(GetParam().isa) {}

  static void Compare(const Spec& spec, std::uint64_t seed, double start) {
    SCOPED_TRACE(Describe(spec) + " seed " + std::to_string(seed));
    Tensors<float> tensors(spec);
    tensors.Randomise(seed);
    tensors.sink.where = start;
    const Expected expected(spec, tensors);
    const auto kernel = GetParam().make(spec);
    tensors.Run(*kernel);
    ASSERT_EQ(tensors.sink.taken, tensors.weight.size());
    tensors.weight_gradient = tensors.sink.gradient();
    expected.ExpectNear(tensors, OfSums(spec));
  }

  const ScopedIsa isa_;
};

INSTANTIATE_TEST_SUITE_P(All, FullyConnectedTest, testing::ValuesIn(Implementations()), NameOf);

TEST_P(FullyConnectedTest, RandomLayersMatchTheReference) {
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    Rng rng(seed);
    const std::int64_t widest = rng.Below(8) == 0 ? 500 : 70;
    const std::int64_t batch = Draw(rng, 1, 17);
    const std::int64_t in = Draw(rng, 1, widest);
    const std::int64_t out = Draw(rng, 1, widest);
    Compare(SpecOf(batch, in, out), seed, static_cast<double>(rng.Below(100)) / 100);
  }
}

TEST_P(FullyConnectedTest, ExtremeLayersMatchTheReference) {
  const std::int64_t sizes[][3] = {{1, 1, 1},
                                   {8, 1, 33},
                                   {8, 5000, 3},
                                   {1, 9216, 5},
                                   {1, 320, 400},
                                   {8, 400, 10},
                                   {3, 3, 5000},
                                   {16, 1500, 70},
                                   {33, 900, 100}};
  for (const auto& [batch, in, out] : sizes) {
    Compare(SpecOf(batch, in, out), 1, 0.5);
  }
}

TEST_P(FullyConnectedTest, ErrorsThatNobodyAsksForAreNotWritten) {
  for (const std::int64_t in : {3, 100}) {
    const Spec spec = SpecOf(3, in, 7);
    const auto kernel = GetParam().make(spec);
    Tensors<float> asked(spec);
    asked.Randomise(3);
    Tensors<float> not_asked = asked;
    kernel->Backward(asked.View());
    Operands<float> view = not_asked.View();
    float* const nothing = nullptr;
    view.input_errors = {&nothing, 1};
    kernel->Backward(view);
    EXPECT_EQ(asked.sink.gradient(), not_asked.sink.gradient());
  }
}

}  // namespace
}  // namespace adamant::kernels
