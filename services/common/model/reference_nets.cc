#include <string>
#include <utility>

#include "services/common/model/model.h"

namespace adamant::model {
namespace {

/// Appends layers one after another, each fed by the one before.
class Chain {
 public:
  explicit Chain(Net net) : net_(std::move(net)) {}

  Chain& Conv(const std::string& name, std::int64_t channels, std::int64_t kernel) {
    Layer& layer = Add(name, LayerKind::kConv2d);
    layer.channels = channels;
    layer.kernel = {kernel, kernel};
    return *this;
  }
  Chain& MaxPool(const std::string& name, std::int64_t kernel) {
    Layer& layer = Add(name, LayerKind::kMaxPool);
    layer.kernel = layer.stride = {kernel, kernel};
    return *this;
  }
  Chain& FullyConnected(const std::string& name, std::int64_t outputs) {
    Add(name, LayerKind::kFullyConnected).channels = outputs;
    return *this;
  }
  Chain& Relu(const std::string& name) {
    Add(name, LayerKind::kRelu);
    return *this;
  }

  Net Take() { return std::move(net_); }

 private:
  Layer& Add(const std::string& name, LayerKind kind) {
    const std::string input = net_.layers.empty() ? "input" : net_.layers.back().name;
    Layer& layer = net_.layers.emplace_back();
    layer.name = name;
    layer.kind = kind;
    layer.inputs = {input};
    return layer;
  }

  Net net_;
};

Net AdamMnist() {
  return Chain({.input = {1, 28, 28}, .classes = 10, .layers = {}, .output = ""})
      .Conv("conv1", 10, 5)
      .Relu("relu1")
      .MaxPool("pool1", 2)
      .Conv("conv2", 20, 5)
      .Relu("relu2")
      .MaxPool("pool2", 2)
      .FullyConnected("fc1", 400)
      .Relu("relu3")
      .FullyConnected("fc2", 400)
      .Relu("relu4")
      .FullyConnected("fc3", 10)
      .Take();
}

constexpr struct {
  const char* name;
  Net (*make)();
} kNets[] = {{"adam-mnist", AdamMnist}};

}  // namespace

std::vector<std::string> ReferenceNetNames() {
  std::vector<std::string> names;
  for (const auto& net : kNets) {
    names.emplace_back(net.name);
  }
  return names;
}

absl::StatusOr<Net> ReferenceNet(const std::string& name) {
  std::string known;
  for (const auto& net : kNets) {
    if (name == net.name) {
      return net.make();
    }
    known += known.empty() ? net.name : std::string(", ") + net.name;
  }
  return absl::NotFoundError("there is no reference net \"" + name + "\"; known: " + known);
}

}  // namespace adamant::model
