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
                                            Backend backend,
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
