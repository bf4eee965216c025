#pragma once

// Fast kernels against the reference in double precision: its results, how far apart rounding may
// lead, and random windows to compare on.

#include "services/common/kernels/reference/reference.h"
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
  to.Run(*kernel);
  return to;
}

/// What a layer makes of some tensors, in double precision.
class Expected {
 public:
  Expected(const Spec& spec, const Tensors<float>& from)
      : values_(Reference(spec, from, false)), magnitudes_(Reference(spec, from, true)) {}

  /// `result`: of the kernel under test, with the channels first.
  void ExpectNear(const Tensors<float>& result, const Tolerances& tolerances) const {
    Compare("output", result.output, &Tensors<double>::output, tolerances.forward);
    kernels::ExpectNear("input error",
                        result.input_errors[0],
                        values_.input_errors[0],
                        magnitudes_.input_errors[0],
                        tolerances.input_error);
    Compare("weight gradient",
            result.weight_gradient,
            &Tensors<double>::weight_gradient,
            tolerances.weight_gradient);
    Compare("bias gradient",
            result.bias_gradient,
            &Tensors<double>::bias_gradient,
            tolerances.bias_gradient);
  }

 private:
  void Compare(const std::string& what,
               const std::vector<float>& result,
               std::vector<double> Tensors<double>::*member,
               Tolerance tolerance) const {
    kernels::ExpectNear(what, result, values_.*member, magnitudes_.*member, tolerance);
  }

  Tensors<double> values_;
  Tensors<double> magnitudes_;
};

/// The tensors of a spec with the channels first as a kernel with the channels last wants them.
inline void MakeChannelsLast(const Spec& spec, Tensors<float>& tensors) {
  tensors.inputs[0] = ToChannelsLast(spec.batch, spec.inputs[0], tensors.inputs[0]);
  tensors.output_error = ToChannelsLast(spec.batch, spec.output, tensors.output_error);
}

/// What such a kernel wrote, back in the order of the spec.
inline void MakeChannelsFirst(const Spec& spec, Tensors<float>& tensors) {
  tensors.output = ToChannelsFirst(spec.batch, spec.output, tensors.output);
  tensors.input_errors[0] = ToChannelsFirst(spec.batch, spec.inputs[0], tensors.input_errors[0]);
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

/// Convolutions at the limits of what there may be.
inline std::vector<Spec> ExtremeConvolutions(std::int64_t batch) {
  struct Case {
    Shape input;
    std::int64_t channels;
    model::Extent2d kernel;
    model::Extent2d stride;
    model::Extent2d padding;
    std::int64_t groups;
  };
  const Case cases[] = {
      {{1, 1, 1}, 1, {1, 1}, {1, 1}, {0, 0}, 1},       // a single product
      {{1, 1, 300}, 1, {1, 7}, {1, 1}, {0, 3}, 1},     // a row
      {{3, 300, 1}, 5, {9, 1}, {2, 1}, {4, 0}, 1},     // a column
      {{5, 6, 7}, 4, {6, 7}, {1, 1}, {0, 0}, 1},       // a kernel as large as its input
      {{2, 3, 3}, 3, {3, 3}, {50, 50}, {2, 2}, 1},     // a stride beyond the input
      {{2, 1, 1}, 3, {5, 5}, {1, 1}, {4, 4}, 1},       // more padding than input
      {{64, 5, 5}, 64, {3, 3}, {1, 1}, {1, 1}, 64},    // one map per group
      {{7, 5, 5}, 21, {3, 3}, {1, 1}, {1, 1}, 7},      // three maps per group
      {{257, 2, 2}, 130, {1, 1}, {1, 1}, {0, 0}, 1},   // many channels, no multiple of a vector
      {{3, 40, 40}, 17, {11, 11}, {4, 4}, {5, 5}, 1},  // a wide kernel
  };
  std::vector<Spec> specs;
  for (const Case& c : cases) {
    model::Layer layer = LayerOf(model::LayerKind::kConv2d);
    layer.channels = c.channels;
    layer.kernel = c.kernel;
    layer.stride = c.stride;
    layer.padding = c.padding;
    layer.groups = c.groups;
    specs.push_back(MakeSpec(layer, {c.input}, batch));
  }
  return specs;
}

/// Those of adam-mnist, and of a net for small coloured images.
inline std::vector<Spec> ConvolutionsOfKnownNets(std::int64_t batch) {
  const std::pair<Shape, std::int64_t> shapes[] = {
      {{1, 28, 28}, 10}, {{10, 12, 12}, 20}, {{3, 16, 16}, 32}, {{32, 8, 8}, 64}};
  std::vector<Spec> specs;
  for (const auto& [input, channels] : shapes) {
    model::Layer layer = LayerOf(model::LayerKind::kConv2d);
    layer.channels = channels;
    layer.kernel = {5, 5};
    layer.padding = input[0] % 2 == 1 ? model::Extent2d{2, 2} : model::Extent2d{0, 0};
    specs.push_back(MakeSpec(layer, {input}, batch));
  }
  return specs;
}

}  // namespace adamant::kernels
