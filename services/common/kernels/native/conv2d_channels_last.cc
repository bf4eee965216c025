// Own convolutions of few examples. The loop orders are in correlate_channels_last-inl.h (forward),
// scatter_channels_last-inl.h (errors of the inputs) and weight_gradient_channels_last-inl.h.
#include "services/common/kernels/native/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_TARGET_INCLUDE "services/common/kernels/native/conv2d_channels_last.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <algorithm>
#include <memory>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/channels_last.h"
#include "services/common/kernels/native/lanes.h"
#include "services/common/kernels/native/simd/correlate_channels_last-inl.h"
#include "services/common/kernels/native/simd/scatter_channels_last-inl.h"
#include "services/common/kernels/native/simd/weight_gradient_channels_last-inl.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

/// One packed vector's worth of channels; a load of it touches one cache line.
struct alignas(kLanes * sizeof(float)) PackedLanes {
  float values[kLanes];
};

class Conv2dChannelsLast final : public Kernel<float> {
 public:
  explicit Conv2dChannelsLast(const Spec& spec)
      : spec_(spec),
        batch_(spec.batch),
        in_(*ElementCount(spec.inputs[0])),
        out_(*ElementCount(spec.output)),
        channels_(spec.output[0]),
        forward_(ForwardCorrelation(spec, kLanes)) {
    forward_weights_.resize(static_cast<std::size_t>(forward_.packed_size() / kLanes));
    if (spec.training) {
      gradient_plan_ = PlanWeightGradient(spec, kPixelTileLimits);
      scatter_rows_ = ScatterRows(spec);
      backward_weights_.resize(
          static_cast<std::size_t>(channels_ * BackwardSteps().channel / kLanes));
      gradient_.resize(forward_weights_.size());
    }
  }

  [[nodiscard]] std::string name() const override {
    return "own channels last " + SupportedIsas().front();
  }

  void Forward(const Operands<float>& o) override {
    PackForward(o.weight);
    for (std::int64_t i = 0; i < batch_; ++i) {
      CorrelateChannelsLast(forward_,
                            ForwardSteps(),
                            o.inputs[0] + i * in_,
                            forward_weights_.data()->values,
                            o.bias,
                            o.output + i * out_);
    }
  }

  void Backward(const Operands<float>& o) override {
    BackwardParameters(o);
    float* const errors = o.input_errors[0];
    if (errors == nullptr) {
      return;
    }
    PackBackward(o.weight);
    std::fill_n(errors, batch_ * in_, 0.0f);
    for (std::int64_t i = 0; i < batch_; ++i) {
      ScatterChannelsLast(spec_,
                          scatter_rows_,
                          BackwardSteps(),
                          o.output_error + i * out_,
                          backward_weights_.data()->values,
                          errors + i * in_);
    }
  }

 private:
  /// [group][panel of outputs][input][position][kLanes]: a transposition of a group's weights.
  [[nodiscard]] PackedSteps ForwardSteps() const {
    return {.panel = forward_.packed_panel(), .channel = forward_.kernel_plane * kLanes};
  }
  /// [group][output channel][panel of input channels][position][kLanes]: one of each output's.
  [[nodiscard]] PackedSteps BackwardSteps() const {
    const std::int64_t panel = forward_.kernel_plane * kLanes;
    return {.panel = panel, .channel = (forward_.inputs + kLanes - 1) / kLanes * panel};
  }

  /// A group's weights as examples of all that leads to an output.
  [[nodiscard]] LaneShape GroupShape() const {
    return {.batch = forward_.panels * kLanes,
            .channels = forward_.weight_output,
            .plane = 1,
            .rows = forward_.outputs};
  }

  void PackForward(const float* weights) {
    for (std::int64_t group = 0; group < forward_.groups; ++group) {
      ToBatchInnermost(GroupShape(),
                       MapLayout::kChannelsFirst,
                       weights + group * forward_.outputs * forward_.weight_output,
                       forward_weights_.data()->values + group * GroupSize());
    }
  }

  void PackBackward(const float* weights) {
    const LaneShape shape = {.batch = BackwardSteps().channel / forward_.kernel_plane,
                             .channels = forward_.kernel_plane,
                             .plane = 1,
                             .rows = forward_.inputs};
    for (std::int64_t output = 0; output < channels_; ++output) {
      ToBatchInnermost(shape,
                       MapLayout::kChannelsFirst,
                       weights + output * forward_.weight_output,
                       backward_weights_.data()->values + output * BackwardSteps().channel);
    }
  }

  void BackwardParameters(const Operands<float>& o) {
    std::fill(gradient_.begin(), gradient_.end(), PackedLanes{});
    AddWeightGradientChannelsLast(gradient_plan_,
                                  forward_,
                                  ForwardSteps(),
                                  {.pass = nullptr,
                                   .examples = batch_,
                                   .input = o.inputs[0],
                                   .input_example = in_,
                                   .input_tap = 0,
                                   .error = o.output_error,
                                   .error_example = out_,
                                   .gradient = nullptr,
                                   .gradient_vector = 0,
                                   .gradient_tap = 0,
                                   .lanes = 0},
                                  gradient_.data()->values);
    for (std::int64_t group = 0; group < forward_.groups; ++group) {
      FromBatchInnermost(GroupShape(),
                         MapLayout::kChannelsFirst,
                         gradient_.data()->values + group * GroupSize(),
                         o.weight_gradient + group * forward_.outputs * forward_.weight_output);
    }
    BiasGradientChannelsLast(
        channels_, batch_ * (out_ / channels_), o.output_error, o.bias_gradient);
  }

  [[nodiscard]] std::int64_t GroupSize() const { return forward_.panels * forward_.packed_panel(); }

  const Spec spec_;
  const std::int64_t batch_;
  const std::int64_t in_;  // elements of an example
  const std::int64_t out_;
  const std::int64_t channels_;  // of the output
  const Correlation forward_;
  WeightPlan gradient_plan_;
  std::vector<std::vector<Tap>> scatter_rows_;
  std::vector<PackedLanes> forward_weights_;
  std::vector<PackedLanes> backward_weights_;
  std::vector<PackedLanes> gradient_;  // as the forward weights
};

std::unique_ptr<Kernel<float>> MakeConv2dLast(const Spec& spec) {
  return std::make_unique<Conv2dChannelsLast>(spec);
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace adamant::kernels::internal {

HWY_EXPORT(MakeConv2dLast);

std::unique_ptr<Kernel<float>> MakeConv2dChannelsLast(const Spec& spec) {
  ADAMANT_CHECK(spec.layout == MapLayout::kChannelsLast, "maps with the channels last");
  return HWY_DYNAMIC_DISPATCH(MakeConv2dLast)(spec);
}

}  // namespace adamant::kernels::internal
#endif
