#pragma once

// Fast kernels against the reference in double precision: its results, how far apart rounding may
// lead, and random windows to compare on.

#include "services/common/kernels/reference.h"
#include "tests/unit/services/common/kernels/kernel_fixture.h"

namespace adamant::kernels {

inline std::vector<double> Widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// How far apart two results may be: `terms` roundings of the sum of the terms' magnitudes
/// (Higham 2002, 4.2), and `slack` for what is approximated.
struct Tolerance {
  double terms = 0;
  double slack = 0;
};

inline void ExpectNear(const std::string& what,
                       const std::vector<float>& values,
                       const std::vector<double>& expected,
                       const std::vector<double>& magnitudes,
                       Tolerance tolerance) {
  constexpr double kRounding = 0x1.0p-24;
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double bound =
        (tolerance.terms + 2) * kRounding * magnitudes[i] + tolerance.slack + 1e-30;
    ASSERT_NEAR(double{values[i]}, expected[i], bound) << what << ", element " << i;
  }
}

struct Tolerances {
  Tolerance forward;
  Tolerance input_error;
  Tolerance weight_gradient;
  Tolerance bias_gradient;
};

/// Of layers that are sums of products: exact but for the order of the terms.
inline Tolerances OfSums(const Spec& spec) {
  const model::Layer& l = spec.layer;
  const auto count = [](const Shape& shape) { return static_cast<double>(*ElementCount(shape)); };
  const double outputs =
      static_cast<double>(spec.batch) * count(spec.output) / static_cast<double>(spec.output[0]);
  const bool convolution = l.kind == model::LayerKind::kConv2d;
  const double taps = convolution ? static_cast<double>(l.kernel.height * l.kernel.width) /
                                        static_cast<double>(l.groups)
                                  : 1;
  return {.forward = {static_cast<double>(spec.inputs[0][0]) * taps + 1},
          .input_error = {static_cast<double>(spec.output[0]) * taps},
          .weight_gradient = {outputs},
          .bias_gradient = {outputs}};
}

inline Tolerances Slack(double slack) {
  return {
      .forward = {0, slack}, .input_error = {0, slack}, .weight_gradient = {}, .bias_gradient = {}};
}

/// Runs the layer in double precision on the values of `from`, or on their magnitudes.
inline Tensors<double> Reference(const Spec& spec, const Tensors<float>& from, bool magnitudes) {
  Tensors<double> to(spec);
  const auto copy = [&](const std::vector<float>& values) {
    std::vector<double> result = Widened(values);
    if (magnitudes) {
      std::for_each(result.begin(), result.end(), [](double& value) { value = std::abs(value); });
    }
    return result;
  };
  to.inputs[0] = copy(from.inputs[0]);
  to.weight = copy(from.weight);
  to.bias = copy(from.bias);
  to.output_error = copy(from.output_error);
  const auto kernel = MakeReferenceKernel<double>(spec);
  kernel->Forward(to.View());
  kernel->Backward(to.View());
  return to;
}

/// A number in [low, high].
inline std::int64_t Draw(Rng& rng, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(high - low + 1)));
}

/// A random window that fits a random input; returns the input's shape.
inline Shape DrawWindow(Rng& rng, model::Layer& layer, std::int64_t channels) {
  const bool convolution = layer.kind == model::LayerKind::kConv2d;
  layer.kernel = {Draw(rng, 1, 5), Draw(rng, 1, 5)};
  layer.stride = {Draw(rng, 1, 3), Draw(rng, 1, 3)};
  if (convolution && rng.Below(3) == 0) {
    layer.dilation = {Draw(rng, 1, 3), Draw(rng, 1, 3)};
  }
  const std::int64_t height = layer.dilation.height * (layer.kernel.height - 1) + 1;
  const std::int64_t width = layer.dilation.width * (layer.kernel.width - 1) + 1;
  layer.padding = {Draw(rng, 0, std::min<std::int64_t>(height - 1, 3)),
                   Draw(rng, 0, std::min<std::int64_t>(width - 1, 3))};
  return {channels, height + Draw(rng, 0, 9), width + Draw(rng, 0, 9)};
}

}  // namespace adamant::kernels
