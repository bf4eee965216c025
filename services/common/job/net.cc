#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/check.h"
#include "services/common/job/job.h"

namespace adamant::job {
namespace {

model::LayerKind KindOf(v1::Layer::Kind kind) {
  switch (kind) {
    case v1::Layer::KIND_CONV2D:
      return model::LayerKind::kConv2d;
    case v1::Layer::KIND_MAX_POOL:
      return model::LayerKind::kMaxPool;
    case v1::Layer::KIND_AVERAGE_POOL:
      return model::LayerKind::kAveragePool;
    case v1::Layer::KIND_FULLY_CONNECTED:
      return model::LayerKind::kFullyConnected;
    case v1::Layer::KIND_RELU:
      return model::LayerKind::kRelu;
    case v1::Layer::KIND_SIGMOID:
      return model::LayerKind::kSigmoid;
    case v1::Layer::KIND_TANH:
      return model::LayerKind::kTanh;
    case v1::Layer::KIND_DROPOUT:
      return model::LayerKind::kDropout;
    case v1::Layer::KIND_FLATTEN:
      return model::LayerKind::kFlatten;
    case v1::Layer::KIND_ADD:
      return model::LayerKind::kAdd;
    case v1::Layer::KIND_CONCAT:
      return model::LayerKind::kConcat;
    default:
      break;
  }
  ADAMANT_CHECK(false, "a parsed layer has a kind");
}

/// [height, width], or `otherwise` where the layer's kind has none.
model::Extent2d ExtentOf(const google::protobuf::RepeatedField<std::int64_t>& pair,
                         model::Extent2d otherwise) {
  return pair.size() == 2 ? model::Extent2d{pair[0], pair[1]} : otherwise;
}

model::Layer LayerOf(const v1::Layer& from) {
  model::Layer layer;
  layer.name = from.name();
  layer.kind = KindOf(from.kind());
  layer.inputs.assign(from.inputs().begin(), from.inputs().end());
  layer.channels = from.has_outputs() ? from.outputs() : from.channels();
  layer.kernel = ExtentOf(from.kernel(), layer.kernel);
  layer.stride = ExtentOf(from.stride(), layer.stride);
  layer.padding = ExtentOf(from.padding(), layer.padding);
  layer.dilation = ExtentOf(from.dilation(), layer.dilation);
  layer.groups = from.has_groups() ? from.groups() : layer.groups;
  layer.dropout_rate = from.rate();
  return layer;
}

}  // namespace

model::Net NetOf(const v1::TrainingJob& job) {
  const v1::Model& definition = job.spec().model();
  if (definition.has_reference()) {
    absl::StatusOr<model::Net> net = model::ReferenceNet(definition.reference());
    ADAMANT_CHECK(net.ok(), "a parsed job names a known net");
    return *std::move(net);
  }
  const v1::Network& network = definition.network();
  model::Net net;
  net.input.assign(network.input().begin(), network.input().end());
  net.classes = network.classes();
  net.output = network.output();
  for (const v1::Layer& layer : network.layers()) {
    net.layers.push_back(LayerOf(layer));
  }
  return net;
}

}  // namespace adamant::job
