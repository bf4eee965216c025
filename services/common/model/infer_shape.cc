#include <algorithm>
#include <string>

#include "services/common/model/analysis.h"

namespace adamant::model::internal {
namespace {

// Far above any real layer, and small enough that sums and products of two never overflow.
constexpr std::int64_t kLargest = std::int64_t{1} << 20;

std::string Text(const Extent2d& extent) {
  return std::to_string(extent.height) + "x" + std::to_string(extent.width);
}

bool Within(std::int64_t value, std::int64_t low) { return value >= low && value <= kLargest; }

bool Within(const Extent2d& extent, std::int64_t low) {
  return Within(extent.height, low) && Within(extent.width, low);
}

std::string Range(std::string_view what, std::int64_t low, const std::string& value) {
  return std::string(what) + " must be between " + std::to_string(low) + " and " +
         std::to_string(kLargest) + ", not " + value;
}

bool IsPool(LayerKind kind) {
  return kind == LayerKind::kMaxPool || kind == LayerKind::kAveragePool;
}

/// The extent of the kernel with its holes.
Extent2d Reach(const Layer& layer) {
  const Extent2d dilation = layer.kind == LayerKind::kConv2d ? layer.dilation : Extent2d{};
  return {dilation.height * (layer.kernel.height - 1) + 1,
          dilation.width * (layer.kernel.width - 1) + 1};
}

void CheckWindow(const Layer& layer, std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  if (!Within(layer.kernel, 1)) {
    problems.push_back({-1, "kernel", Range("the kernel", 1, Text(layer.kernel))});
  }
  if (!Within(layer.stride, 1)) {
    problems.push_back({-1, "stride", Range("the stride", 1, Text(layer.stride))});
  }
  if (!Within(layer.padding, 0)) {
    problems.push_back({-1, "padding", Range("the padding", 0, Text(layer.padding))});
  }
  if (layer.kind == LayerKind::kConv2d && !Within(layer.dilation, 1)) {
    problems.push_back({-1, "dilation", Range("the dilation", 1, Text(layer.dilation))});
  }
  if (problems.size() > before) {
    return;
  }
  const Extent2d reach = Reach(layer);
  if (layer.padding.height >= reach.height || layer.padding.width >= reach.width) {
    problems.push_back({-1,
                        "padding",
                        "the padding " + Text(layer.padding) +
                            " must be smaller than the kernel, which reaches over " + Text(reach)});
  }
}

std::variant<Shape, Problem> InferWindow(const Layer& layer, const Shape& input) {
  if (input.size() != 3) {
    return Problem{-1,
                   "inputs",
                   "needs an input of channels x height x width, but gets " + ToString(input) +
                       " features; put it before the flatten or fully connected layer"};
  }
  const Extent2d padded = {input[1] + 2 * layer.padding.height, input[2] + 2 * layer.padding.width};
  const Extent2d reach = Reach(layer);
  if (reach.height > padded.height || reach.width > padded.width) {
    return Problem{-1,
                   "kernel",
                   "the kernel reaches over " + Text(reach) + ", more than its input of " +
                       ToString(input) + " with padding " + Text(layer.padding)};
  }
  Shape output = {input[0],
                  (padded.height - reach.height) / layer.stride.height + 1,
                  (padded.width - reach.width) / layer.stride.width + 1};
  if (IsPool(layer.kind)) {
    return output;
  }
  if (input[0] % layer.groups != 0 || layer.channels % layer.groups != 0) {
    return Problem{-1,
                   "groups",
                   std::to_string(layer.groups) + " groups do not divide " +
                       std::to_string(input[0]) + " input and " + std::to_string(layer.channels) +
                       " output channels"};
  }
  output[0] = layer.channels;
  return output;
}

std::variant<Shape, Problem> InferAdd(const std::vector<Shape>& inputs) {
  for (const Shape& input : inputs) {
    if (input != inputs[0]) {
      return Problem{-1,
                     "inputs",
                     "adds shapes that differ: " + ToString(inputs[0]) + " and " + ToString(input)};
    }
  }
  return inputs[0];
}

std::variant<Shape, Problem> InferConcat(const std::vector<Shape>& inputs) {
  Shape output = inputs[0];
  output[0] = 0;
  for (const Shape& input : inputs) {
    if (!std::equal(input.begin() + 1, input.end(), inputs[0].begin() + 1, inputs[0].end())) {
      return Problem{-1,
                     "inputs",
                     "concatenates channels of shapes that differ in the rest: " +
                         ToString(inputs[0]) + " and " + ToString(input)};
    }
    output[0] += input[0];  // at most 2^12 layers of 2^48 elements
  }
  return output;
}

}  // namespace

std::string_view KindName(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConv2d:
      return "conv2d";
    case LayerKind::kMaxPool:
      return "max pool";
    case LayerKind::kAveragePool:
      return "average pool";
    case LayerKind::kFullyConnected:
      return "fully connected";
    case LayerKind::kRelu:
      return "relu";
    case LayerKind::kSigmoid:
      return "sigmoid";
    case LayerKind::kTanh:
      return "tanh";
    case LayerKind::kDropout:
      return "dropout";
    case LayerKind::kFlatten:
      return "flatten";
    case LayerKind::kAdd:
      return "add";
    case LayerKind::kConcat:
      return "concat";
  }
  return "unknown";
}

std::vector<Problem> CheckFields(const Layer& layer) {
  std::vector<Problem> problems;
  const bool convolution = layer.kind == LayerKind::kConv2d;
  if ((convolution || layer.kind == LayerKind::kFullyConnected) && !Within(layer.channels, 1)) {
    problems.push_back(
        {-1, "channels", Range("the number of outputs", 1, std::to_string(layer.channels))});
  }
  if (convolution && !Within(layer.groups, 1)) {
    problems.push_back(
        {-1, "groups", Range("the number of groups", 1, std::to_string(layer.groups))});
  }
  if (layer.kind == LayerKind::kDropout && !(layer.dropout_rate >= 0 && layer.dropout_rate < 1)) {
    problems.push_back(
        {-1,
         "dropout_rate",
         "the rate must be at least 0 and below 1, not " + std::to_string(layer.dropout_rate)});
  }
  if (convolution || IsPool(layer.kind)) {
    CheckWindow(layer, problems);
  }
  return problems;
}

std::variant<Shape, Problem> InferShape(const Layer& layer, const std::vector<Shape>& inputs) {
  switch (layer.kind) {
    case LayerKind::kConv2d:
    case LayerKind::kMaxPool:
    case LayerKind::kAveragePool:
      return InferWindow(layer, inputs[0]);
    case LayerKind::kFullyConnected:
      return Shape{layer.channels};
    case LayerKind::kFlatten:
      return Shape{*ElementCount(inputs[0])};
    case LayerKind::kAdd:
      return InferAdd(inputs);
    case LayerKind::kConcat:
      return InferConcat(inputs);
    case LayerKind::kRelu:
    case LayerKind::kSigmoid:
    case LayerKind::kTanh:
    case LayerKind::kDropout:
      break;
  }
  return inputs[0];
}

std::optional<Shape> WeightShape(const Layer& layer, const Shape& input) {
  if (layer.kind == LayerKind::kConv2d) {
    return Shape{layer.channels, input[0] / layer.groups, layer.kernel.height, layer.kernel.width};
  }
  if (layer.kind == LayerKind::kFullyConnected) {
    return Shape{layer.channels, *ElementCount(input)};
  }
  return std::nullopt;
}

}  // namespace adamant::model::internal
