// Own convolutions. The loop orders are in correlate-inl.h (forward, and errors of the inputs) and
// weight_gradient-inl.h.
#include "services/common/kernels/native/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_TARGET_INCLUDE "services/common/kernels/native/conv2d_batch_innermost.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <algorithm>
#include <memory>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/batch_innermost.h"
#include "services/common/kernels/native/simd/correlate-inl.h"
#include "services/common/kernels/native/simd/weight_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

class Conv2d final : public Kernel<float> {
 public:
  explicit Conv2d(const Spec& spec)
      : blocks_(spec.batch / kLanes), forward_(ForwardCorrelation(spec, kLargestPanel)) {
    forward_weights_.resize(forward_.packed_size());
    if (spec.training) {
      backward_ = BackwardCorrelation(spec, kLargestPanel);
      gradient_ = PlanWeightGradient(spec, kWeightTileLimits);
      backward_weights_.resize(backward_.packed_size());
    }
  }

  [[nodiscard]] std::string name() const override {
    return "own batch innermost " + SupportedIsas().front();
  }

  void Forward(const Operands<float>& o) override {
    if (o.first) {
      Pack(forward_, o.weight, forward_weights_.data());
    }
    for (std::int64_t block = 0; block < blocks_; ++block) {
      Correlate(forward_,
                o.inputs[0] + block * InputBlock(),
                forward_weights_.data(),
                o.bias,
                o.output + block * OutputBlock());
    }
  }

  void Backward(const Operands<float>& o) override {
    BackwardParameters(o);
    float* const errors = o.input_errors[0];
    if (errors == nullptr) {
      return;
    }
    if (o.first) {
      Pack(backward_, o.weight, backward_weights_.data());
    }
    for (std::int64_t block = 0; block < blocks_; ++block) {
      Correlate(backward_,
                o.output_error + block * OutputBlock(),
                backward_weights_.data(),
                nullptr,
                errors + block * InputBlock());
    }
  }

 private:
  void BackwardParameters(const Operands<float>& o) const {
    const std::int64_t outputs = forward_.groups * forward_.outputs;
    if (o.first) {
      std::fill_n(o.weight_gradient, outputs * forward_.weight_output, 0.0f);
      std::fill_n(o.bias_gradient, outputs, 0.0f);
    }
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const float* input = o.inputs[0] + block * InputBlock();
      const float* error = o.output_error + block * OutputBlock();
      AddWeightGradient(gradient_, forward_, input, error, o.weight_gradient);
      AddBiasGradient(outputs, forward_.output_plane, error, o.bias_gradient);
    }
  }

  [[nodiscard]] std::int64_t InputBlock() const {
    return forward_.groups * forward_.inputs * forward_.input_plane;
  }
  [[nodiscard]] std::int64_t OutputBlock() const {
    return forward_.groups * forward_.outputs * forward_.output_plane;
  }

  const std::int64_t blocks_;
  const Correlation forward_;
  Correlation backward_;
  WeightPlan gradient_;
  std::vector<float> forward_weights_;  // packed
  std::vector<float> backward_weights_;
};

std::unique_ptr<Kernel<float>> MakeConv2d(const Spec& spec) {
  return std::make_unique<Conv2d>(spec);
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace adamant::kernels::internal {

HWY_EXPORT(MakeConv2d);

std::unique_ptr<Kernel<float>> MakeConv2dBatchInnermost(const Spec& spec) {
  ADAMANT_CHECK(spec.layout == MapLayout::kBatchInnermost && spec.batch % kLanes == 0,
                "whole blocks of examples");
  return HWY_DYNAMIC_DISPATCH(MakeConv2d)(spec);
}

}  // namespace adamant::kernels::internal
#endif
