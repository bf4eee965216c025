#include "operator/local/model/net_text.h"

#include <cstdint>
#include <sstream>

#include "services/common/tensor/shape.h"

namespace adamant::local {
namespace {

const char* NameOf(model::LayerKind kind) {
  switch (kind) {
    case model::LayerKind::kConv2d:
      return "Conv2d";
    case model::LayerKind::kMaxPool:
      return "MaxPool";
    case model::LayerKind::kAveragePool:
      return "AveragePool";
    case model::LayerKind::kFullyConnected:
      return "FullyConnected";
    case model::LayerKind::kRelu:
      return "Relu";
    case model::LayerKind::kSigmoid:
      return "Sigmoid";
    case model::LayerKind::kTanh:
      return "Tanh";
    case model::LayerKind::kDropout:
      return "Dropout";
    case model::LayerKind::kFlatten:
      return "Flatten";
    case model::LayerKind::kAdd:
      return "Add";
    case model::LayerKind::kConcat:
      return "Concat";
  }
  return "";
}

std::string ExtentText(const char* name, const model::Extent2d& extent, std::int64_t absent) {
  return extent.height == absent && extent.width == absent
             ? ""
             : std::string(", ") + name + " " + std::to_string(extent.height) + "x" +
                   std::to_string(extent.width);
}

// The rate of a Dropout is left out, which has a meaning in training alone.
std::string SizesOf(const model::Layer& layer) {
  switch (layer.kind) {
    case model::LayerKind::kConv2d:
      return ", channels " + std::to_string(layer.channels) +
             ExtentText("kernel", layer.kernel, 0) + ExtentText("stride", layer.stride, 1) +
             ExtentText("padding", layer.padding, 0) + ExtentText("dilation", layer.dilation, 1) +
             (layer.groups == 1 ? "" : ", groups " + std::to_string(layer.groups));
    case model::LayerKind::kMaxPool:
    case model::LayerKind::kAveragePool:
      return ExtentText("kernel", layer.kernel, 0) + ExtentText("stride", layer.stride, 1) +
             ExtentText("padding", layer.padding, 0);
    case model::LayerKind::kFullyConnected:
      return ", outputs " + std::to_string(layer.channels);
    case model::LayerKind::kRelu:
    case model::LayerKind::kSigmoid:
    case model::LayerKind::kTanh:
    case model::LayerKind::kDropout:
    case model::LayerKind::kFlatten:
    case model::LayerKind::kAdd:
    case model::LayerKind::kConcat:
      break;  // no default: a kind that is forgotten here would be without its sizes in model files
  }
  return "";
}

}  // namespace

std::string NetText(const model::Graph& graph) {
  std::string text = "input: " + ToString(graph.input) + "\n";
  for (const model::Graph::Node& node : graph.nodes) {
    std::string inputs;
    for (const int input : node.inputs) {
      inputs += (inputs.empty() ? "" : ", ") +
                (input < 0 ? "input" : graph.nodes[static_cast<std::size_t>(input)].layer.name);
    }
    text += node.layer.name + ": " + NameOf(node.layer.kind) + "(" + inputs + ")" +
            SizesOf(node.layer) + "\n";
  }
  const auto output = static_cast<std::size_t>(graph.output);
  return text + "output: " + graph.nodes[output].layer.name + "\n";
}

std::string FirstDifference(const std::string& theirs, const std::string& ours) {
  std::istringstream their_lines(theirs);
  std::istringstream our_lines(ours);
  std::string their_line;
  std::string our_line;
  while (true) {
    const bool more = static_cast<bool>(std::getline(their_lines, their_line));
    const bool more_of_ours = static_cast<bool>(std::getline(our_lines, our_line));
    if (!more && !more_of_ours) {
      return "";
    }
    if (more != more_of_ours || their_line != our_line) {
      return (more ? their_line : "no more layers") + ", not " +
             (more_of_ours ? our_line : "no more layers");
    }
  }
}

}  // namespace adamant::local
