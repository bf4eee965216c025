#include "services/common/graph/lower.h"

#include <optional>
#include <utility>

namespace adamant::graph {
namespace {

using model::Graph;
using model::LayerKind;

class Lowering {
 public:
  explicit Lowering(const Graph& graph) : graph_(graph), place_(graph.nodes.size()) {
    result_.input = graph.input;
    result_.classes = graph.classes;
    result_.parameters = graph.parameters;
    result_.flop_per_example = graph.flop_per_example;
  }

  Graph Run() && {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      Graph::Node node = graph_.nodes[i];
      for (int& input : node.inputs) {
        input = input < 0 ? -1 : place_[input];
      }
      if (node.layer.kind == LayerKind::kFullyConnected) {
        node.inputs[0] = Flattened(node.inputs[0], node.layer.name);
      }
      place_[i] = Append(std::move(node));
    }
    result_.output = Flattened(place_[graph_.output], "output");
    MoveRelusBehindPools();
    return std::move(result_);
  }

 private:
  int Append(Graph::Node node) {
    result_.nodes.push_back(std::move(node));
    return static_cast<int>(result_.nodes.size()) - 1;
  }

  int Flattened(int input, const std::string& user) {
    const Shape& shape = input < 0 ? result_.input : result_.nodes[input].output;
    if (shape.size() == 1) {
      return input;
    }
    Graph::Node node;
    node.layer.name = user + ".flatten";
    node.layer.kind = LayerKind::kFlatten;
    node.inputs = {input};
    node.output = {*ElementCount(shape)};
    return Append(std::move(node));
  }

  /// The only node that reads node i; nullopt when there are several.
  [[nodiscard]] std::optional<int> OnlyUser(int i) const {
    std::optional<int> user;
    for (std::size_t k = 0; k < result_.nodes.size(); ++k) {
      for (const int input : result_.nodes[k].inputs) {
        if (input == i) {
          if (user) {
            return std::nullopt;
          }
          user = static_cast<int>(k);
        }
      }
    }
    return user;
  }

  void MoveRelusBehindPools() {
    for (int i = 0; i < static_cast<int>(result_.nodes.size()); ++i) {
      Graph::Node& relu = result_.nodes[i];
      const std::optional<int> user = OnlyUser(i);
      if (relu.layer.kind != LayerKind::kRelu || !user ||
          result_.nodes[*user].layer.kind != LayerKind::kMaxPool) {
        continue;
      }
      Graph::Node& pool = result_.nodes[*user];
      std::swap(relu.layer, pool.layer);
      relu.output = pool.output;  // the first place is now the pool's; its input stays
    }
  }

  const Graph& graph_;
  std::vector<int> place_;  // by node of graph_: where it went
  Graph result_;
};

}  // namespace

Graph Lower(const Graph& graph) { return Lowering(graph).Run(); }

}  // namespace adamant::graph
