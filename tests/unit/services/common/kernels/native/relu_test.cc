// Own ReLUs on every instruction set of this machine, against the reference.

#include "services/common/kernels/native/relu.h"

#include "services/common/kernels/isa.h"
#include "tests/unit/services/common/kernels/reference/reference_comparison.h"

namespace adamant::kernels {
namespace {

class ReluTest : public testing::TestWithParam<std::string> {
 protected:
  ReluTest() : isa_(GetParam()) {}

  static Spec SpecOf(std::int64_t batch, std::int64_t features) {
    return MakeSpec(LayerOf(model::LayerKind::kRelu), {{features}}, batch);
  }

  const ScopedIsa isa_;
};

INSTANTIATE_TEST_SUITE_P(Isas, ReluTest, testing::ValuesIn(SupportedIsas()));

TEST_P(ReluTest, AllSizesMatchTheReference) {
  for (std::int64_t features = 1; features <= 210; ++features) {
    SCOPED_TRACE(features);
    const Spec spec = SpecOf(1 + features % 3, features);
    Tensors<float> tensors(spec);
    tensors.Randomise(static_cast<std::uint64_t>(features));
    const Tensors<double> expected = Reference(spec, tensors, false);
    const auto kernel = internal::MakeRelu(spec);
    tensors.Run(*kernel);
    EXPECT_EQ(Widened(tensors.output), expected.output);
    EXPECT_EQ(Widened(tensors.input_errors[0]), expected.input_errors[0]);
  }
}

TEST_P(ReluTest, WorksInPlace) {
  const Spec spec = SpecOf(1, 37);
  Tensors<float> apart(spec);
  apart.Randomise(1);
  Tensors<float> shared = apart;
  const auto kernel = internal::MakeRelu(spec);
  apart.Run(*kernel);
  Operands<float> view = shared.View();
  view.output = shared.inputs[0].data();
  float* const error = shared.output_error.data();
  view.input_errors = {&error, 1};
  kernel->Forward(view);
  kernel->Backward(view);
  EXPECT_EQ(shared.inputs[0], apart.output);
  EXPECT_EQ(shared.output_error, apart.input_errors[0]);
}

TEST_P(ReluTest, WhatIsNoNumberBecomesZero) {
  const Spec spec = SpecOf(1, 3);
  Tensors<float> tensors(spec);
  tensors.Randomise(1);
  tensors.inputs[0] = {std::numeric_limits<float>::quiet_NaN(), -0.0f, 2.0f};
  const auto kernel = internal::MakeRelu(spec);
  kernel->Forward(tensors.View());
  EXPECT_EQ(tensors.output, (std::vector<float>{0, 0, 2}));
}

}  // namespace
}  // namespace adamant::kernels
