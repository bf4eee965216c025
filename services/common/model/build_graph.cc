#include <algorithm>
#include <string>
#include <utility>

#include "services/common/model/analysis.h"

namespace adamant::model {
namespace {

/// Whether the node's output reaches a ReLU through nothing but layers that keep its scale.
bool FeedsRelu(const Graph& graph, int node) {
  for (std::size_t user = 0; user < graph.nodes.size(); ++user) {
    const std::vector<int>& inputs = graph.nodes[user].inputs;
    if (std::find(inputs.begin(), inputs.end(), node) == inputs.end()) {
      continue;
    }
    switch (graph.nodes[user].layer.kind) {
      case LayerKind::kRelu:
        return true;
      case LayerKind::kMaxPool:
      case LayerKind::kAveragePool:
      case LayerKind::kDropout:
      case LayerKind::kFlatten:
        if (FeedsRelu(graph, static_cast<int>(user))) {
          return true;
        }
        break;
      default:
        break;
    }
  }
  return false;
}

const Shape& InputShape(const Graph& graph, const Graph::Node& node) {
  return node.inputs[0] < 0 ? graph.input : graph.nodes[node.inputs[0]].output;
}

void AddParameters(Graph& graph, int index) {
  Graph::Node& node = graph.nodes[index];
  std::optional<Shape> weights = internal::WeightShape(node.layer, InputShape(graph, node));
  if (!weights) {
    return;
  }
  const std::int64_t outputs = (*weights)[0];
  const std::int64_t count = *ElementCount(*weights);
  const std::int64_t multiplications = count * (*ElementCount(node.output) / outputs);
  // Forward, gradient of the weights and, unless nothing asks for it, gradient of the input.
  graph.flop_per_example += 2 * multiplications * (node.inputs[0] < 0 ? 2 : 3);
  node.weight = static_cast<int>(graph.parameters.size());
  node.bias = node.weight + 1;
  graph.parameters.push_back(
      {.name = node.layer.name + ".weight",
       .layer = node.layer.name,
       .shape = *std::move(weights),
       .initialisation = FeedsRelu(graph, index) ? Initialisation::kHe : Initialisation::kXavier,
       .fan_in = count / outputs,
       .decays = true});
  graph.parameters.push_back({.name = node.layer.name + ".bias",
                              .layer = node.layer.name,
                              .shape = {outputs},
                              .initialisation = Initialisation::kZero,
                              .fan_in = count / outputs,
                              .decays = false});
}

}  // namespace

absl::StatusOr<Graph> BuildGraph(const Net& net) {
  internal::Analysis analysis = internal::Analyse(net);
  if (!analysis.problems.empty()) {
    const Problem& problem = analysis.problems.front();
    const std::string where = problem.layer < 0 ? "" : net.layers[problem.layer].name + ": ";
    const std::string field = problem.field.empty() ? "" : problem.field + ": ";
    return absl::InvalidArgumentError(where + field + problem.message);
  }
  std::vector<int> position(net.layers.size());
  for (std::size_t i = 0; i < analysis.order.size(); ++i) {
    position[analysis.order[i]] = static_cast<int>(i);
  }
  Graph graph;
  graph.input = net.input;
  graph.classes = net.classes;
  graph.output = position[analysis.output];
  for (const int layer : analysis.order) {
    Graph::Node& node = graph.nodes.emplace_back();
    node.layer = net.layers[layer];
    node.output = *std::move(analysis.shapes[layer]);
    for (const int input : analysis.inputs[layer]) {
      node.inputs.push_back(input < 0 ? -1 : position[input]);
    }
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    AddParameters(graph, static_cast<int>(i));
  }
  return graph;
}

}  // namespace adamant::model
