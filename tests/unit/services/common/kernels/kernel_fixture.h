#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/kernels/kernel.h"
#include "services/common/kernels/reference/transpose.h"
#include "services/common/model/analysis.h"

namespace adamant::kernels {

inline Spec MakeSpec(const model::Layer& layer,
                     std::vector<Shape> inputs,
                     std::int64_t batch,
                     MapLayout layout = MapLayout::kChannelsFirst) {
  auto output = model::internal::InferShape(layer, inputs);
  EXPECT_TRUE(std::holds_alternative<Shape>(output)) << std::get<model::Problem>(output).message;
  return {.layer = layer,
          .inputs = std::move(inputs),
          .output = std::get<Shape>(std::move(output)),
          .batch = batch,
          .training = true,
          .layout = layout,
          .input_layout = layout};
}

inline std::string Describe(const Spec& spec) {
  const model::Layer& l = spec.layer;
  const auto pair = [](const model::Extent2d& e) {
    return std::to_string(e.height) + "," + std::to_string(e.width);
  };
  std::string text = std::string(model::internal::KindName(l.kind)) + " batch " +
                     std::to_string(spec.batch) + " " + ToString(spec.inputs[0]) + " -> " +
                     ToString(spec.output);
  text += " kernel " + pair(l.kernel) + " stride " + pair(l.stride) + " padding " +
          pair(l.padding) + " dilation " + pair(l.dilation) + " groups " + std::to_string(l.groups);
  return text;
}

/// Puts a weight's gradient together again, and counts the pieces.
class WeightGradientSink final : public GradientSink {
 public:
  static constexpr std::size_t kBegin = 1000;  // of the weight

  void Take(std::size_t begin, std::span<float> gradient) override {
    gradient_.resize(std::max(gradient_.size(), begin - kBegin + gradient.size()));
    std::ranges::copy(gradient, std::span(gradient_).subspan(begin - kBegin).begin());
    std::fill(gradient.begin(), gradient.end(), std::numeric_limits<float>::quiet_NaN());
    taken += gradient.size();
  }
  [[nodiscard]] double start() const override { return where; }

  [[nodiscard]] const std::vector<float>& gradient() const { return gradient_; }

  double where = 0;
  std::size_t taken = 0;

 private:
  std::vector<float> gradient_;
};

/// All that a kernel reads and writes. Outputs start as NaN, so that what is not written shows.
template <class T>
struct Tensors {
  explicit Tensors(const Spec& spec) {
    const auto sized = [&](const Shape& shape) {
      return std::vector<T>(static_cast<std::size_t>(spec.batch * *ElementCount(shape)), kNothing);
    };
    for (const Shape& shape : spec.inputs) {
      inputs.push_back(sized(shape));
      input_errors.push_back(sized(shape));
    }
    output = output_error = sized(spec.output);
    if (const auto shape = model::internal::WeightShape(spec.layer, spec.inputs[0])) {
      weight.resize(static_cast<std::size_t>(*ElementCount(*shape)));
      bias.resize(static_cast<std::size_t>((*shape)[0]));
      weight_gradient.assign(weight.size(), kNothing);
      bias_gradient.assign(bias.size(), kNothing);
    }
  }

  void Randomise(std::uint64_t seed) {
    Rng rng(seed);
    const auto fill = [&](std::vector<T>& values) {
      // Floats, so that both precisions compute on the same numbers.
      std::generate(values.begin(), values.end(), [&] { return static_cast<float>(rng.Normal()); });
    };
    std::for_each(inputs.begin(), inputs.end(), fill);
    fill(weight);
    fill(bias);
    fill(output_error);
  }

  /// Forward, then Backward, which finds of inputs and output only what it needs.
  void Run(Kernel<T>& kernel) {
    kept.resize(static_cast<std::size_t>(kernel.KeptBytes()));
    kernel.Forward(View());
    const auto inputs_before = inputs;
    const auto output_before = output;
    if (!kernel.NeedsInputs()) {
      for (std::vector<T>& input : inputs) {
        std::fill(input.begin(), input.end(), kNothing);
      }
    }
    if (!kernel.NeedsOutput()) {
      std::fill(output.begin(), output.end(), kNothing);
    }
    kernel.Backward(View());
    inputs = inputs_before;
    output = output_before;
  }

  /// Pointers into the vectors; valid until they are resized.
  Operands<T> View() {
    input_pointers.clear();
    error_pointers.clear();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      input_pointers.push_back(inputs[i].data());
      error_pointers.push_back(input_errors[i].data());
    }
    return {.inputs = input_pointers,
            .output = output.data(),
            .weight = weight.data(),
            .bias = bias.data(),
            .dropout = true,
            .seed = 77,
            .kept = kept.data(),
            .output_error = output_error.data(),
            .input_errors = error_pointers,
            .weight_gradient = weight_gradient.data(),
            .bias_gradient = bias_gradient.data(),
            .sink = &sink,
            .weight_begin = WeightGradientSink::kBegin};
  }

  /// What Backward wrote or handed over.
  [[nodiscard]] const std::vector<T>& WeightGradient(const Kernel<T>& kernel) const {
    if constexpr (std::is_same_v<T, float>) {
      if (kernel.HandsOverWeightGradient()) {
        return sink.gradient();
      }
    }
    return weight_gradient;
  }

  static constexpr T kNothing = std::numeric_limits<T>::quiet_NaN();
  std::vector<std::vector<T>> inputs;
  std::vector<std::vector<T>> input_errors;
  std::vector<T> output;
  std::vector<T> output_error;
  std::vector<T> weight;
  std::vector<T> bias;
  std::vector<T> weight_gradient;
  std::vector<T> bias_gradient;
  std::vector<std::uint8_t> kept;
  WeightGradientSink sink;
  std::vector<const T*> input_pointers;
  std::vector<T*> error_pointers;
};

/// The same activations in the other layout; features stay as they are.
template <class T>
std::vector<T> ToChannelsLast(std::int64_t batch, const Shape& shape, const std::vector<T>& from) {
  std::vector<T> to = from;
  if (shape.size() == 3) {
    Transpose(batch, shape[0], shape[1] * shape[2], from.data(), to.data());
  }
  return to;
}

template <class T>
std::vector<T> ToChannelsFirst(std::int64_t batch, const Shape& shape, const std::vector<T>& from) {
  std::vector<T> to = from;
  if (shape.size() == 3) {
    Transpose(batch, shape[1] * shape[2], shape[0], from.data(), to.data());
  }
  return to;
}

inline model::Layer LayerOf(model::LayerKind kind) {
  model::Layer layer;
  layer.name = "layer";
  layer.kind = kind;
  return layer;
}

}  // namespace adamant::kernels
