#include "services/common/export/onnx_model.h"

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::exports {
namespace {

using model::Graph;
using model::Layer;
using model::LayerKind;

constexpr std::size_t kMaxBytes = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxStructureBytes = std::size_t{64} << 20;  // beside the weights
constexpr std::size_t kChecksumDigits = 16;
constexpr int kOpset = 13;
constexpr int kIrVersion = 7;  // the one that came with the opset
constexpr char kInput[] = "input";
constexpr char kNormalised[] = "input.normalised";
constexpr char kLogits[] = "logits";
constexpr char kInputText[] =
    "Images as float32, NCHW, with values from 0 to 255 as bytes have them, not from 0 to 1: the "
    "model normalises them itself";

void AddAttribute(onnx::NodeProto& node, const char* name, std::int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void AddAttribute(onnx::NodeProto& node,
                  const char* name,
                  const std::vector<std::int64_t>& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  attribute.mutable_ints()->Add(values.begin(), values.end());
}

std::vector<std::int64_t> Pair(const model::Extent2d& extent) {
  return {extent.height, extent.width};
}

void AddWindow(onnx::NodeProto& node, const Layer& layer) {
  AddAttribute(node, "kernel_shape", Pair(layer.kernel));
  AddAttribute(node, "strides", Pair(layer.stride));
  const auto [height, width] = layer.padding;
  AddAttribute(node, "pads", {height, width, height, width});  // top, left, bottom, right
}

const char* OperatorOf(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConv2d:
      return "Conv";
    case LayerKind::kMaxPool:
      return "MaxPool";
    case LayerKind::kAveragePool:
      return "AveragePool";
    case LayerKind::kFullyConnected:
      return "Gemm";
    case LayerKind::kRelu:
      return "Relu";
    case LayerKind::kSigmoid:
      return "Sigmoid";
    case LayerKind::kTanh:
      return "Tanh";
    case LayerKind::kDropout:
      return "Identity";
    case LayerKind::kFlatten:
      return "Flatten";
    case LayerKind::kAdd:
      return "Sum";
    case LayerKind::kConcat:
      return "Concat";
  }
  CheckFailed("layer kind", __FILE__, __LINE__, std::to_string(static_cast<int>(kind)));
}

void AddAttributes(onnx::NodeProto& node, const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::kConv2d:
      AddWindow(node, layer);
      AddAttribute(node, "dilations", Pair(layer.dilation));
      AddAttribute(node, "group", layer.groups);
      break;
    case LayerKind::kMaxPool:
      AddWindow(node, layer);
      break;
    case LayerKind::kAveragePool:
      AddWindow(node, layer);
      AddAttribute(node, "count_include_pad", 1);
      break;
    case LayerKind::kFullyConnected:
      AddAttribute(node, "transB", 1);
      break;
    case LayerKind::kConcat:
      AddAttribute(node, "axis", 1);
      break;
    default:
      break;
  }
}

void AddInitialiser(onnx::GraphProto& out,
                    const std::string& name,
                    const Shape& shape,
                    std::span<const float> values) {
  onnx::TensorProto& tensor = *out.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.mutable_dims()->Add(shape.begin(), shape.end());
  tensor.set_raw_data(values.data(), values.size_bytes());  // little-endian, as the host
}

void DescribeValue(onnx::ValueInfoProto& value, const char* name, const Shape& shape) {
  value.set_name(name);
  onnx::TypeProto::Tensor& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const std::int64_t extent : shape) {
    type.mutable_shape()->add_dim()->set_dim_value(extent);
  }
}

// Writes the nodes of one graph.
class NodeWriter {
 public:
  NodeWriter(const Graph& graph, onnx::GraphProto& out) : graph_(graph), out_(out) {}

  void Write() {
    AddNode("Sub", "normalise_mean", {kInput, "normalise.mean"}, "input.centred");
    AddNode("Div", "normalise_deviation", {"input.centred", "normalise.deviation"}, kNormalised);
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      values_.push_back(WriteNode(i));
    }
  }

 private:
  onnx::NodeProto& AddNode(const char* kind,
                           const std::string& name,
                           const std::vector<std::string>& inputs,
                           const std::string& output) {
    onnx::NodeProto& node = *out_.add_node();
    node.set_op_type(kind);
    node.set_name(name);
    node.mutable_input()->Add(inputs.begin(), inputs.end());
    node.add_output(output);
    return node;
  }

  // The name of the value that node `i` computes. Names with a dot never clash with layers.
  [[nodiscard]] std::string NameOf(int i) const {
    return i == graph_.output ? kLogits
                              : graph_.nodes[static_cast<std::size_t>(i)].layer.name + ".output";
  }

  [[nodiscard]] std::string ValueOf(int i) const {
    return i < 0 ? kNormalised : values_[static_cast<std::size_t>(i)];
  }

  [[nodiscard]] const Shape& ShapeOf(int i) const {
    return i < 0 ? graph_.input : graph_.nodes[static_cast<std::size_t>(i)].output;
  }

  // Returns the name of the node's value.
  std::string WriteNode(int i) {
    const Graph::Node& node = graph_.nodes[static_cast<std::size_t>(i)];
    const Layer& layer = node.layer;
    std::vector<std::string> inputs;
    for (const int input : node.inputs) {
      inputs.push_back(ValueOf(input));
    }
    if (layer.kind == LayerKind::kDropout && i != graph_.output) {
      return inputs[0];
    }
    if (layer.kind == LayerKind::kFullyConnected && ShapeOf(node.inputs[0]).size() > 1) {
      AddNode("Flatten", layer.name + ".flatten", inputs, layer.name + ".flat");
      inputs = {layer.name + ".flat"};
    }
    for (const int parameter : {node.weight, node.bias}) {
      if (parameter >= 0) {
        inputs.push_back(graph_.parameters[static_cast<std::size_t>(parameter)].name);
      }
    }
    AddAttributes(AddNode(OperatorOf(layer.kind), layer.name, inputs, NameOf(i)), layer);
    return NameOf(i);
  }

  const Graph& graph_;
  onnx::GraphProto& out_;
  std::vector<std::string> values_;  // by node
};

absl::Status CheckSizes(const Graph& graph,
                        std::span<const float> weights,
                        const Normalisation& normalisation) {
  const auto channels = static_cast<std::size_t>(graph.input[0]);
  if (normalisation.mean.size() != channels || normalisation.deviation.size() != channels) {
    return absl::InvalidArgumentError(
        "the normalisation needs a mean and a deviation for each of " + std::to_string(channels) +
        " channels");
  }
  std::size_t elements = 0;
  for (const Parameter& parameter : graph.parameters) {
    elements += static_cast<std::size_t>(ElementCount(parameter.shape).value_or(0));
  }
  if (elements != weights.size()) {
    return absl::InvalidArgumentError("the net has " + std::to_string(elements) + " weights, not " +
                                      std::to_string(weights.size()));
  }
  return absl::OkStatus();
}

void WriteInitialisers(const Graph& graph,
                       std::span<const float> weights,
                       const Normalisation& normalisation,
                       onnx::GraphProto& out) {
  const Shape per_channel = {1, graph.input[0], 1, 1};
  AddInitialiser(out, "normalise.mean", per_channel, normalisation.mean);
  AddInitialiser(out, "normalise.deviation", per_channel, normalisation.deviation);
  for (const Parameter& parameter : graph.parameters) {
    const auto elements = static_cast<std::size_t>(*ElementCount(parameter.shape));
    AddInitialiser(out, parameter.name, parameter.shape, weights.first(elements));
    weights = weights.subspan(elements);
  }
}

absl::StatusOr<Tensor> TensorOf(const onnx::TensorProto& initialiser) {
  const std::string name = "initialiser " + initialiser.name();
  if (initialiser.data_location() == onnx::TensorProto::EXTERNAL) {
    return absl::UnimplementedError(name + " has its values in another file");
  }
  Tensor tensor{.name = initialiser.name(),
                .shape = {initialiser.dims().begin(), initialiser.dims().end()},
                .values = {}};
  const std::string& raw = initialiser.raw_data();
  if (raw.empty()) {
    tensor.values.assign(initialiser.float_data().begin(), initialiser.float_data().end());
  } else {
    tensor.values.resize(raw.size() / sizeof(float));
    std::memcpy(tensor.values.data(), raw.data(), tensor.values.size() * sizeof(float));
  }
  const auto elements = static_cast<std::uint64_t>(ElementCount(tensor.shape).value_or(0));
  if (tensor.values.size() != elements || raw.size() % sizeof(float) != 0) {
    return absl::DataLossError(name + " of the shape " + ToString(tensor.shape) +
                               " does not have as many values");
  }
  return tensor;
}

// A metadata property with the checksum of what follows it. Fields may stand in any order, so a
// model can begin with it; wherever the file is cut, it is still there.
std::string ChecksumProperty(std::string_view content) {
  onnx::ModelProto first;
  onnx::StringStringEntryProto& property = *first.add_metadata_props();
  property.set_key("xxh3_64");
  property.set_value(HexChecksum(std::as_bytes(std::span(content))));
  return first.SerializeAsString();
}

}  // namespace

absl::StatusOr<std::string> EncodeOnnx(const Graph& graph,
                                       std::span<const float> weights,
                                       const Normalisation& normalisation,
                                       const Metadata& metadata) {
  ADAMANT_RETURN_IF_ERROR(CheckSizes(graph, weights, normalisation));
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("adamant");
  model.set_doc_string(std::string("A net for classification. Input: ") + kInputText +
                       ". Output: logits, before the softmax.");
  onnx::OperatorSetIdProto& operators = *model.add_opset_import();
  operators.set_domain("");
  operators.set_version(kOpset);
  for (const auto& [key, value] : metadata) {
    onnx::StringStringEntryProto& property = *model.add_metadata_props();
    property.set_key(key);
    property.set_value(value);
  }
  onnx::GraphProto& out = *model.mutable_graph();
  out.set_name("net");
  DescribeValue(*out.add_input(), kInput, graph.input);
  out.mutable_input(0)->set_doc_string(kInputText);
  DescribeValue(*out.add_output(), kLogits, {graph.classes});
  NodeWriter(graph, out).Write();
  std::string bytes;
  if (IsBeyondOnnx(weights)) {
    return absl::OutOfRangeError("the weights exceed the 2 GB of an ONNX file: use safetensors");
  }
  WriteInitialisers(graph, weights, normalisation, out);
  if (!model.SerializeToString(&bytes)) {
    return absl::OutOfRangeError("the net exceeds the 2 GB of an ONNX file: use safetensors");
  }
  return ChecksumProperty(bytes) + bytes;
}

bool IsBeyondOnnx(std::span<const float> weights) {
  return weights.size_bytes() > kMaxBytes - kMaxStructureBytes;
}

absl::Status WriteOnnx(const std::filesystem::path& path,
                       const Graph& graph,
                       std::span<const float> weights,
                       const Normalisation& normalisation,
                       const Metadata& metadata,
                       Pipes pipes) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string bytes,
                           EncodeOnnx(graph, weights, normalisation, metadata));
  return WriteFile(path, bytes, pipes);
}

absl::StatusOr<std::vector<Tensor>> ReadOnnxTensors(const std::filesystem::path& path) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxBytes));
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes) || !model.has_graph()) {
    return absl::DataLossError(path.string() + ": not a valid ONNX file");
  }
  std::vector<Tensor> tensors;
  for (const onnx::TensorProto& initialiser : model.graph().initializer()) {
    if (initialiser.data_type() != onnx::TensorProto::FLOAT) {
      continue;
    }
    absl::StatusOr<Tensor> tensor = TensorOf(initialiser);
    if (!tensor.ok()) {
      return absl::Status(tensor.status().code(),
                          path.string() + ": " + std::string(tensor.status().message()));
    }
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

absl::Status CheckOnnx(const std::filesystem::path& path) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxBytes));
  const std::size_t property = ChecksumProperty("").size();
  if (bytes.size() > property) {
    const std::string_view content = std::string_view(bytes).substr(property);
    const std::string_view written = std::string_view(bytes).substr(0, property);
    const std::string expected = ChecksumProperty(content);
    if (written == expected) {
      return absl::OkStatus();
    }
    if (written.starts_with(std::string_view(expected).substr(0, property - kChecksumDigits))) {
      return absl::DataLossError(path.string() +
                                 ": it does not have the checksum xxh3_64 of its metadata: it is "
                                 "damaged, or was changed and has kept the old one");
    }
  }
  onnx::ModelProto model;
  return model.ParseFromString(bytes) && model.has_graph()
             ? absl::OkStatus()
             : absl::DataLossError(path.string() + ": not a valid ONNX file");
}

}  // namespace adamant::exports
