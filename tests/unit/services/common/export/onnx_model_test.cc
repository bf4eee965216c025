#include "services/common/export/onnx_model.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <string_view>

#include "services/common/base/system/files.h"
#include "tests/fakes/nets.h"

namespace adamant::exports {
namespace {

struct Model {
  model::Graph graph;
  std::vector<float> weights;
  Normalisation normalisation;
};

Model MakeModel(const model::Net& net) {
  Model result;
  result.graph = model::BuildGraph(net).value();
  std::size_t elements = 0;
  for (const Parameter& parameter : result.graph.parameters) {
    elements += static_cast<std::size_t>(*ElementCount(parameter.shape));
  }
  result.weights.resize(elements);
  std::iota(result.weights.begin(), result.weights.end(), 0.0F);
  const auto channels = static_cast<std::size_t>(net.input[0]);
  result.normalisation = {std::vector<float>(channels, 33.0F), std::vector<float>(channels, 78.0F)};
  return result;
}

onnx::ModelProto Encode(const Model& model, const Metadata& metadata = {}) {
  const auto bytes = EncodeOnnx(model.graph, model.weights, model.normalisation, metadata);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  onnx::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromString(*bytes));
  return proto;
}

const onnx::NodeProto& NodeNamed(const onnx::ModelProto& model, const std::string& name) {
  for (const auto& node : model.graph().node()) {
    if (node.name() == name) {
      return node;
    }
  }
  ADD_FAILURE() << "no node " << name;
  return onnx::NodeProto::default_instance();
}

std::vector<std::int64_t> Integers(const onnx::NodeProto& node, const std::string& attribute) {
  for (const auto& candidate : node.attribute()) {
    if (candidate.name() == attribute) {
      return {candidate.ints().begin(), candidate.ints().end()};
    }
  }
  return {};
}

TEST(OnnxModelTest, InputAndOutputHaveASymbolicBatch) {
  const onnx::ModelProto model = Encode(MakeModel(model::ReferenceNet("adam-mnist").value()));
  EXPECT_EQ(model.opset_import(0).version(), 13);
  ASSERT_EQ(model.graph().input_size(), 1);
  const auto& input = model.graph().input(0);
  EXPECT_EQ(input.name(), "input");
  const auto& dims = input.type().tensor_type().shape();
  ASSERT_EQ(dims.dim_size(), 4);
  EXPECT_EQ(dims.dim(0).dim_param(), "batch");
  EXPECT_EQ(dims.dim(1).dim_value(), 1);
  EXPECT_EQ(dims.dim(3).dim_value(), 28);
  ASSERT_EQ(model.graph().output_size(), 1);
  EXPECT_EQ(model.graph().output(0).name(), "logits");
  EXPECT_EQ(model.graph().output(0).type().tensor_type().shape().dim(1).dim_value(), 10);
}

TEST(OnnxModelTest, ModelAndInputSayWhatTheyTake) {
  const onnx::ModelProto model = Encode(MakeModel(model::ReferenceNet("adam-mnist").value()));
  for (const std::string& text : {model.doc_string(), model.graph().input(0).doc_string()}) {
    EXPECT_NE(text.find("float32, NCHW, with values from 0 to 255"), std::string::npos) << text;
  }
}

TEST(OnnxModelTest, EveryValueIsDefinedBeforeItsUseAndOnce) {
  const onnx::ModelProto model = Encode(MakeModel(fakes::EveryLayerKind()));
  std::set<std::string> defined = {"input"};
  for (const auto& tensor : model.graph().initializer()) {
    EXPECT_TRUE(defined.insert(tensor.name()).second) << tensor.name();
  }
  std::set<std::string> names;
  for (const auto& node : model.graph().node()) {
    EXPECT_TRUE(names.insert(node.name()).second) << node.name();
    for (const auto& input : node.input()) {
      EXPECT_TRUE(defined.contains(input)) << node.name() << " reads " << input;
    }
    EXPECT_TRUE(defined.insert(node.output(0)).second) << node.output(0);
  }
  EXPECT_TRUE(defined.contains("logits"));
}

TEST(OnnxModelTest, WindowsKeepTheirExtents) {
  const onnx::ModelProto model = Encode(MakeModel(fakes::EveryLayerKind()));
  using Values = std::vector<std::int64_t>;
  const auto& conv = NodeNamed(model, "conv");
  EXPECT_EQ(conv.op_type(), "Conv");
  EXPECT_EQ(Integers(conv, "kernel_shape"), (Values{3, 2}));
  EXPECT_EQ(Integers(conv, "pads"), (Values{1, 0, 1, 0}));
  EXPECT_EQ(Integers(conv, "dilations"), (Values{1, 2}));
  EXPECT_EQ(Integers(NodeNamed(model, "max_pool"), "strides"), (Values{2, 1}));
}

TEST(OnnxModelTest, DropoutIsLeftOutUnlessItIsTheOutput) {
  const onnx::ModelProto inner = Encode(MakeModel(fakes::EveryLayerKind()));
  EXPECT_EQ(NodeNamed(inner, "flatten").input(0), "average_pool.output");
  model::Net net = fakes::EveryLayerKind();
  net.layers.push_back(
      {.name = "last", .kind = model::LayerKind::kDropout, .inputs = {"logits_layer"}});
  net.layers.back().dropout_rate = 0.1;
  net.output = "last";
  const onnx::ModelProto outer = Encode(MakeModel(net));
  EXPECT_EQ(NodeNamed(outer, "last").op_type(), "Identity");
  EXPECT_EQ(NodeNamed(outer, "last").output(0), "logits");
}

TEST(OnnxModelTest, WeightsKeepTheirNamesShapesAndOrder) {
  const Model model = MakeModel(model::ReferenceNet("adam-mnist").value());
  const onnx::ModelProto proto = Encode(model);
  std::size_t at = 0;
  int index = 2;  // after the normalisation
  for (const Parameter& parameter : model.graph.parameters) {
    const auto& tensor = proto.graph().initializer(index++);
    EXPECT_EQ(tensor.name(), parameter.name);
    EXPECT_EQ(Shape(tensor.dims().begin(), tensor.dims().end()), parameter.shape);
    const auto bytes = std::as_bytes(std::span(model.weights))
                           .subspan(at * sizeof(float), tensor.raw_data().size());
    EXPECT_EQ(tensor.raw_data(),
              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    at += tensor.raw_data().size() / sizeof(float);
  }
  EXPECT_EQ(at, model.weights.size());
}

TEST(OnnxModelTest, MetadataBecomesProperties) {
  const onnx::ModelProto model =
      Encode(MakeModel(fakes::EveryLayerKind()), {{"accuracy", "0.99"}, {"job", "digits"}});
  ASSERT_EQ(model.metadata_props_size(), 3);
  EXPECT_EQ(model.metadata_props(0).key(), "xxh3_64");
  EXPECT_EQ(model.metadata_props(1).key(), "accuracy");
  EXPECT_EQ(model.metadata_props(2).value(), "digits");
}

TEST(OnnxModelTest, AFileThatIsNotWholeIsNotTaken) {
  const Model model = MakeModel(fakes::EveryLayerKind());
  const std::string bytes =
      EncodeOnnx(model.graph, model.weights, model.normalisation, {{"job", "digits"}}).value();
  const std::string path = testing::TempDir() + "/onnx_model_test.onnx";
  const auto check = [&path](std::string_view content) {
    EXPECT_TRUE(WriteFile(path, content).ok());
    return CheckOnnx(path);
  };
  EXPECT_TRUE(check(bytes).ok());
  for (std::size_t i = 27; i < bytes.size(); i += 997) {  // after the property
    std::string flipped = bytes;
    flipped[i] ^= 1;
    EXPECT_TRUE(absl::IsDataLoss(check(flipped))) << i;
    EXPECT_TRUE(absl::IsDataLoss(check(bytes.substr(0, i)))) << i;
  }
  EXPECT_TRUE(absl::IsDataLoss(check(bytes.substr(0, bytes.size() - 1))));
  EXPECT_TRUE(absl::IsDataLoss(check(bytes.substr(0, 27))));
  EXPECT_TRUE(absl::IsDataLoss(check("")));
  onnx::ModelProto earlier;
  ASSERT_TRUE(earlier.ParseFromString(bytes));
  earlier.mutable_metadata_props()->DeleteSubrange(0, 1);
  EXPECT_TRUE(check(earlier.SerializeAsString()).ok());
  std::filesystem::remove(path);
  EXPECT_TRUE(absl::IsNotFound(CheckOnnx(path)));
}

TEST(OnnxModelTest, SizesThatDoNotFitAreRefused) {
  Model model = MakeModel(fakes::EveryLayerKind());
  model.weights.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(
      EncodeOnnx(model.graph, model.weights, model.normalisation, {}).status()));
  model = MakeModel(fakes::EveryLayerKind());
  model.normalisation.mean.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(
      EncodeOnnx(model.graph, model.weights, model.normalisation, {}).status()));
}

TEST(OnnxTensorsTest, TheParametersOfAFileComeBackByTheirNames) {
  const Model model = MakeModel(fakes::EveryLayerKind());
  const std::string path = testing::TempDir() + "/onnx_tensors_test.onnx";
  ASSERT_TRUE(WriteOnnx(path, model.graph, model.weights, model.normalisation, {}).ok());
  const auto tensors = ReadOnnxTensors(path);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  std::size_t offset = 0;
  for (const Parameter& parameter : model.graph.parameters) {
    const auto found = std::ranges::find(*tensors, parameter.name, &Tensor::name);
    ASSERT_NE(found, tensors->end()) << parameter.name;
    EXPECT_EQ(found->shape, parameter.shape);
    ASSERT_FALSE(found->values.empty());
    EXPECT_EQ(found->values.front(), model.weights[offset]);
    offset += found->values.size();
  }
  EXPECT_EQ(offset, model.weights.size());
}

TEST(OnnxTensorsTest, WhatIsNoFileOfTheFormatOrHasOtherSizesIsDamage) {
  const std::string path = testing::TempDir() + "/onnx_tensors_damage_test.onnx";
  ASSERT_TRUE(WriteFileAtomically(path, "no model").ok());
  EXPECT_TRUE(absl::IsDataLoss(ReadOnnxTensors(path).status()));
  onnx::ModelProto model;
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("fc.bias");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.add_float_data(1);
  ASSERT_TRUE(WriteFileAtomically(path, model.SerializeAsString()).ok());
  const absl::Status damage = ReadOnnxTensors(path).status();
  EXPECT_TRUE(absl::IsDataLoss(damage));
  EXPECT_NE(damage.message().find("fc.bias"), std::string_view::npos) << damage;
  tensor.add_float_data(2);
  ASSERT_TRUE(WriteFileAtomically(path, model.SerializeAsString()).ok());
  EXPECT_EQ(ReadOnnxTensors(path).value().front().values, (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace adamant::exports
