#include "services/common/graph/executed_node.h"

#include "services/common/base/status_macros.h"

namespace adamant::graph {
namespace {

BoundTensor BindTensor(const ParameterPlace& place, float* memory) {
  const auto at = [&](std::int64_t offset) { return offset < 0 ? nullptr : memory + offset; };
  return {.offset = static_cast<std::size_t>(place.begin),
          .count = static_cast<std::size_t>(place.count),
          .copy = at(place.copy),
          .gradient = at(place.gradient)};
}

}  // namespace

absl::StatusOr<std::vector<ExecutedNode>> MakeNodes(const Program& program,
                                                    kernels::Backend& backend,
                                                    std::int64_t batch,
                                                    bool training) {
  std::vector<ExecutedNode> nodes;
  std::uint64_t dropouts = 0;
  for (int i = 0; i < static_cast<int>(program.graph.nodes.size()); ++i) {
    ExecutedNode& node = nodes.emplace_back();
    node.dropout = dropouts;
    dropouts += program.graph.nodes[i].layer.kind == model::LayerKind::kDropout ? 1 : 0;
    const kernels::Spec spec = program.SpecOf(i, batch, training);
    ADAMANT_ASSIGN_OR_RETURN(node.kernel, backend.Make(spec));
    node.profile = {.layer = spec.layer.name,
                    .kernel = node.kernel->name(),
                    .layout = spec.layout,
                    .is_maps = spec.output.size() == 3,
                    .output_bytes = static_cast<std::int64_t>(sizeof(float)) * batch *
                                    *ElementCount(spec.output),
                    .flop_per_example = program.FlopPerExample(i)};
  }
  return nodes;
}

void BindParameters(const Program& program,
                    const ParameterPlan& plan,
                    float* memory,
                    std::vector<ExecutedNode>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const model::Graph::Node& from = program.graph.nodes[i];
    if (from.weight < 0) {
      continue;
    }
    ExecutedNode& node = nodes[i];
    node.parameter = from.weight;
    node.is_fully_connected = from.layer.kind == model::LayerKind::kFullyConnected;
    node.weight = BindTensor(plan.places[static_cast<std::size_t>(from.weight)], memory);
    node.bias = BindTensor(plan.places[static_cast<std::size_t>(from.bias)], memory);
  }
}

}  // namespace adamant::graph
