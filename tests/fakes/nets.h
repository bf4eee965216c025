#pragma once

#include "services/common/model/model.h"

namespace adamant::fakes {

/// A small net in which every kind of layer occurs, with strides, padding, dilation and groups that
/// differ by direction, a layer with two users, and dropout in between.
inline model::Net EveryLayerKind() {
  using model::Extent2d;
  using model::LayerKind;
  model::Net net;
  net.input = {3, 13, 11};
  net.classes = 4;
  net.output = "logits_layer";
  const auto add = [&](model::Layer layer) { net.layers.push_back(std::move(layer)); };
  const auto layer = [](std::string name, LayerKind kind, std::vector<std::string> inputs) {
    model::Layer result;
    result.name = std::move(name);
    result.kind = kind;
    result.inputs = std::move(inputs);
    return result;
  };

  model::Layer conv = layer("conv", LayerKind::kConv2d, {"input"});
  conv.channels = 6;
  conv.kernel = Extent2d{3, 2};
  conv.padding = Extent2d{1, 0};
  conv.dilation = Extent2d{1, 2};
  add(conv);
  add(layer("relu", LayerKind::kRelu, {"conv"}));
  model::Layer max_pool = layer("max_pool", LayerKind::kMaxPool, {"relu"});
  max_pool.kernel = Extent2d{3, 2};
  max_pool.stride = Extent2d{2, 1};
  max_pool.padding = Extent2d{1, 0};
  add(max_pool);
  model::Layer grouped = layer("grouped", LayerKind::kConv2d, {"max_pool"});
  grouped.channels = 6;
  grouped.kernel = Extent2d{3, 3};
  grouped.padding = Extent2d{1, 1};
  grouped.groups = 3;
  add(grouped);
  add(layer("tanh", LayerKind::kTanh, {"grouped"}));
  add(layer("sum", LayerKind::kAdd, {"tanh", "max_pool"}));
  add(layer("both", LayerKind::kConcat, {"sum", "tanh"}));
  model::Layer average_pool = layer("average_pool", LayerKind::kAveragePool, {"both"});
  average_pool.kernel = Extent2d{2, 3};
  average_pool.stride = Extent2d{2, 2};
  average_pool.padding = Extent2d{1, 1};
  add(average_pool);
  model::Layer dropout = layer("dropout", LayerKind::kDropout, {"average_pool"});
  dropout.dropout_rate = 0.5;
  add(dropout);
  add(layer("flatten", LayerKind::kFlatten, {"dropout"}));
  model::Layer hidden = layer("hidden", LayerKind::kFullyConnected, {"flatten"});
  hidden.channels = 9;
  add(hidden);
  add(layer("sigmoid", LayerKind::kSigmoid, {"hidden"}));
  model::Layer logits = layer("logits_layer", LayerKind::kFullyConnected, {"sigmoid"});
  logits.channels = 4;
  add(logits);
  return net;
}

}  // namespace adamant::fakes
