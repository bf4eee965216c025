#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/graph/context.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::graph {

inline model::Graph ReferenceGraph(const std::string& name) {
  auto net = model::ReferenceNet(name);
  auto graph = model::BuildGraph(*net);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

inline model::Layer MakeLayer(std::string name,
                              model::LayerKind kind,
                              std::vector<std::string> inputs) {
  model::Layer layer;
  layer.name = std::move(name);
  layer.kind = kind;
  layer.inputs = std::move(inputs);
  return layer;
}

/// Every kind of layer, joins of both kinds, maps read by several layers, two inputs of one layer
/// that are the same, and logits that are maps.
inline model::Graph Branched(double dropout_rate = 0.3) {
  using model::Layer;
  using model::LayerKind;
  std::vector<Layer> layers;
  const auto conv =
      [&](std::string name, std::string input, std::int64_t channels, std::int64_t kernel) {
        Layer& layer =
            layers.emplace_back(MakeLayer(std::move(name), LayerKind::kConv2d, {std::move(input)}));
        layer.channels = channels;
        layer.kernel = {kernel, kernel};
        layer.padding = {kernel / 2, kernel / 2};
        return &layer;
      };
  conv("stem", "input", 8, 3);
  layers.push_back(MakeLayer("stem_relu", LayerKind::kRelu, {"stem"}));
  conv("left", "stem_relu", 8, 3)->groups = 2;
  layers.push_back(MakeLayer("left_tanh", LayerKind::kTanh, {"left"}));
  Layer* right = conv("right", "stem_relu", 8, 3);
  right->dilation = {2, 2};
  right->padding = {2, 2};
  layers.push_back(MakeLayer("sum", LayerKind::kAdd, {"left_tanh", "right", "right"}));
  layers.push_back(MakeLayer("all", LayerKind::kConcat, {"sum", "input", "stem_relu"}));
  layers.push_back(MakeLayer("dropped", LayerKind::kDropout, {"all"}));
  layers.back().dropout_rate = dropout_rate;
  conv("mix", "dropped", 6, 1)->stride = {2, 1};
  layers.push_back(MakeLayer("mix_sigmoid", LayerKind::kSigmoid, {"mix"}));
  layers.push_back(MakeLayer("mix_relu", LayerKind::kRelu, {"mix"}));
  Layer pool = MakeLayer("max", LayerKind::kMaxPool, {"mix_relu"});
  pool.kernel = {2, 2};
  layers.push_back(pool);
  pool = MakeLayer("average", LayerKind::kAveragePool, {"mix_sigmoid"});
  pool.kernel = {2, 2};
  layers.push_back(pool);
  layers.push_back(MakeLayer("pools", LayerKind::kConcat, {"max", "average"}));
  Layer hidden = MakeLayer("hidden", LayerKind::kFullyConnected, {"pools"});
  hidden.channels = 20;
  layers.push_back(hidden);
  Layer out = MakeLayer("out", LayerKind::kFullyConnected, {"hidden"});
  out.channels = 4;
  layers.push_back(out);
  auto graph = model::BuildGraph({{3, 9, 7}, 4, layers, ""});
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// All parameters of the graph as they start, end to end.
inline std::vector<float> InitialWeights(const model::Graph& graph, std::uint64_t seed) {
  const ShardLayout layout(graph.parameters, 1);
  std::vector<float> weights(layout.elements());
  for (const Shard& shard : layout.shards()) {
    InitialiseShard(
        seed,
        graph.parameters[shard.tensor],
        shard,
        std::span(weights).subspan(layout.OffsetOf(shard.tensor) + shard.begin, shard.size()));
  }
  return weights;
}

inline std::unique_ptr<Context> MakeContext(const model::Graph& graph,
                                            std::int64_t batch,
                                            BackendKind backend,
                                            bool training = true) {
  auto context = Context::Create(graph, batch, backend, training);
  EXPECT_TRUE(context.ok()) << context.status();
  return *std::move(context);
}

/// Fills the first `batch` examples with noise and random labels.
inline void FillRandom(Context& context, std::int64_t batch, std::int64_t classes, Rng& rng) {
  const std::size_t width = context.input().size() / context.labels().size();
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch); ++i) {
    for (std::size_t k = 0; k < width; ++k) {
      context.input()[i * width + k] = static_cast<float>(rng.Normal());
    }
    context.labels()[i] = static_cast<std::int32_t>(rng.Below(static_cast<std::uint64_t>(classes)));
  }
}

}  // namespace adamant::graph
