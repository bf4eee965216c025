#include "services/common/graph/program.h"

#include <array>
#include <limits>
#include <map>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/graph/lower.h"

namespace adamant::graph {
namespace {

using kernels::MapLayout;
using model::LayerKind;

constexpr std::array kLayouts = {
    MapLayout::kChannelsFirst, MapLayout::kChannelsLast, MapLayout::kBatchInnermost};
constexpr double kNever = std::numeric_limits<double>::infinity();

/// By layout of a node's output: the time of all that leads to it. Features have the first only.
using Costs = std::array<double, kLayouts.size()>;

std::size_t IndexOf(MapLayout layout) { return static_cast<std::size_t>(layout); }

const Shape& ShapeOf(const model::Graph& graph, int node) {
  return node < 0 ? graph.input : graph.nodes[static_cast<std::size_t>(node)].output;
}

kernels::Spec MakeSpec(const model::Graph& graph,
                       int node,
                       const Program::Layouts& layouts,
                       std::int64_t batch,
                       bool training) {
  const model::Graph::Node& from = graph.nodes[static_cast<std::size_t>(node)];
  kernels::Spec spec = {.layer = from.layer,
                        .inputs = {},
                        .output = from.output,
                        .batch = batch,
                        .training = training,
                        .layout = layouts.output,
                        .input_layout = layouts.input,
                        .relu = layouts.relu};
  for (const int input : from.inputs) {
    spec.inputs.push_back(ShapeOf(graph, input));
  }
  return spec;
}

/// Changes the layout of maps and nothing else.
model::Graph::Node Conversion(const model::Graph& graph, int input, const std::string& user) {
  model::Graph::Node node;
  node.layer.name = user + ".layout";
  node.layer.kind = LayerKind::kFlatten;
  node.inputs = {input};
  node.output = ShapeOf(graph, input);
  return node;
}

class LayoutChoice {
 public:
  LayoutChoice(const model::Graph& graph,
               const kernels::Backend& backend,
               std::int64_t batch,
               bool training)
      : graph_(graph),
        backend_(backend),
        batch_(batch),
        training_(training),
        users_(graph.nodes.size()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const int input : graph.nodes[i].inputs) {
        if (input >= 0) {
          users_[static_cast<std::size_t>(input)].push_back(static_cast<int>(i));
        }
      }
    }
  }

  /// By node: the layout of its output.
  std::vector<MapLayout> Run() && {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      Costs& costs = costs_.emplace_back();
      for (const MapLayout layout : kLayouts) {
        costs[IndexOf(layout)] = CostOf(static_cast<int>(i), layout);
      }
    }
    std::vector<MapLayout> chosen(graph_.nodes.size());
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      chosen[i] = Best(i, chosen);
    }
    return chosen;
  }

 private:
  [[nodiscard]] bool IsFlatten(int node) const {
    return graph_.nodes[static_cast<std::size_t>(node)].layer.kind == LayerKind::kFlatten;
  }

  [[nodiscard]] double CostOf(int node, MapLayout layout) const {
    const model::Graph::Node& from = graph_.nodes[static_cast<std::size_t>(node)];
    if (from.output.size() == 1 && layout != MapLayout::kChannelsFirst) {
      return kNever;
    }
    double cost = 0;
    if (!IsFlatten(node)) {
      cost = backend_.Cost(MakeSpec(graph_, node, {layout, layout}, batch_, training_))
                 .value_or(kNever);
    }
    for (const int input : from.inputs) {
      double least = kNever;
      for (const MapLayout given : kLayouts) {
        least = std::min(least, CostUpTo(input, given) + Change(input, given, layout));
      }
      cost += least;
    }
    return cost;
  }

  /// The share of one of its users.
  [[nodiscard]] double CostUpTo(int node, MapLayout layout) const {
    if (node < 0) {
      return layout == MapLayout::kChannelsFirst ? 0 : kNever;
    }
    const auto i = static_cast<std::size_t>(node);
    return costs_[i][IndexOf(layout)] / static_cast<double>(users_[i].size());
  }

  [[nodiscard]] double Change(int node, MapLayout from, MapLayout to) const {
    const Shape& shape = ShapeOf(graph_, node);
    if (from == to || shape.size() == 1) {
      return 0;
    }
    model::Graph::Node change = Conversion(graph_, node, "");
    return backend_
        .Cost({.layer = change.layer,
               .inputs = {shape},
               .output = shape,
               .batch = batch_,
               .training = training_,
               .layout = to,
               .input_layout = from})
        .value_or(kNever);
  }

  [[nodiscard]] MapLayout Best(std::size_t i, const std::vector<MapLayout>& chosen) const {
    MapLayout best = MapLayout::kChannelsFirst;
    double least = kNever;
    for (const MapLayout layout : kLayouts) {
      double cost = costs_[i][IndexOf(layout)];
      for (const int user : users_[i]) {
        cost += Change(static_cast<int>(i), layout, chosen[static_cast<std::size_t>(user)]);
      }
      if (cost < least) {
        least = cost;
        best = layout;
      }
    }
    ADAMANT_CHECK(least < kNever, "a layer has a kernel in some layout");
    return best;
  }

  const model::Graph& graph_;
  const kernels::Backend& backend_;
  const std::int64_t batch_;
  const bool training_;
  std::vector<std::vector<int>> users_;
  std::vector<Costs> costs_;
};

/// Copies a lowered graph into a program, with the changes of layout that the choice asks for.
class Assembly {
 public:
  Assembly(const model::Graph& graph, std::vector<MapLayout> chosen)
      : graph_(graph), chosen_(std::move(chosen)), users_(graph.nodes.size(), 0) {
    for (const model::Graph::Node& node : graph.nodes) {
      for (const int input : node.inputs) {
        if (input >= 0) {
          ++users_[static_cast<std::size_t>(input)];
        }
      }
    }
  }

  Program Run() && {
    result_.graph = graph_;
    result_.graph.nodes.clear();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      place_.push_back(Add(i));
    }
    result_.graph.output = place_[static_cast<std::size_t>(graph_.output)];
    Cut();
    return std::move(result_);
  }

 private:
  /// Whether node i is a ReLU that the max pool before it can do.
  [[nodiscard]] bool IsPartOfItsInput(std::size_t i) const {
    const int input = graph_.nodes[i].inputs[0];
    if (graph_.nodes[i].layer.kind != LayerKind::kRelu || input < 0) {
      return false;
    }
    const auto pool = static_cast<std::size_t>(input);
    return graph_.nodes[pool].layer.kind == LayerKind::kMaxPool && users_[pool] == 1 &&
           chosen_[pool] == MapLayout::kBatchInnermost && chosen_[i] == chosen_[pool];
  }

  int Add(std::size_t i) {
    model::Graph::Node node = graph_.nodes[i];
    if (IsPartOfItsInput(i)) {
      const int pool = place_[static_cast<std::size_t>(node.inputs[0])];
      result_.layouts[static_cast<std::size_t>(pool)].relu = true;
      result_.graph.nodes[static_cast<std::size_t>(pool)].layer.name += "+" + node.layer.name;
      return pool;
    }
    Program::Layouts layouts = {chosen_[i], chosen_[i]};
    for (int& input : node.inputs) {
      input = input < 0 ? -1 : place_[static_cast<std::size_t>(input)];
      if (node.layer.kind == LayerKind::kFlatten) {
        layouts.input = LayoutOf(input);
      } else {
        input = InLayout(input, layouts.input, node.layer.name);
      }
    }
    return Append(std::move(node), layouts);
  }

  int InLayout(int input, MapLayout wanted, const std::string& user) {
    if (LayoutOf(input) == wanted || ShapeOf(result_.graph, input).size() == 1) {
      return input;
    }
    const auto [known, is_new] = changed_.try_emplace({input, wanted}, 0);
    if (is_new) {
      known->second = Append(Conversion(result_.graph, input, user), {LayoutOf(input), wanted});
    }
    return known->second;
  }

  int Append(model::Graph::Node node, Program::Layouts layouts) {
    result_.graph.nodes.push_back(std::move(node));
    result_.layouts.push_back(layouts);
    return static_cast<int>(result_.layouts.size()) - 1;
  }

  [[nodiscard]] MapLayout LayoutOf(int node) const {
    return node < 0 ? MapLayout::kChannelsFirst
                    : result_.layouts[static_cast<std::size_t>(node)].output;
  }

  void Cut() {
    for (std::size_t i = 0; i < result_.layouts.size(); ++i) {
      const bool blocked = result_.layouts[i].blocked();
      const int node = static_cast<int>(i);
      if (i == 0 || result_.segments.back().blocked != blocked) {
        result_.segments.push_back({node, node, blocked});
      }
      result_.segments.back().end = node + 1;
    }
  }

  const model::Graph& graph_;
  const std::vector<MapLayout> chosen_;
  std::vector<int> users_;  // by node of graph_: how many
  std::vector<int> place_;  // by node of graph_: where it went
  std::map<std::pair<int, MapLayout>, int> changed_;
  Program result_;
};

}  // namespace

kernels::Spec Program::SpecOf(int node, std::int64_t batch, bool training) const {
  const Layouts& l = layouts[static_cast<std::size_t>(node)];
  return MakeSpec(graph, node, l, l.blocked() ? kernels::kLanes : batch, training);
}

std::int64_t Program::FlopPerExample(int node) const {
  const model::Graph::Node& from = graph.nodes[static_cast<std::size_t>(node)];
  if (from.weight < 0) {
    return 0;
  }
  const Shape& weights = graph.parameters[static_cast<std::size_t>(from.weight)].shape;
  const std::int64_t multiplications =
      *ElementCount(weights) * (*ElementCount(from.output) / weights[0]);
  // Nobody asks for the gradient of the net's input, in whatever layout.
  int input = from.inputs[0];
  while (input >= 0 &&
         graph.nodes[static_cast<std::size_t>(input)].layer.kind == LayerKind::kFlatten) {
    input = graph.nodes[static_cast<std::size_t>(input)].inputs[0];
  }
  return 2 * multiplications * (input < 0 ? 2 : 3);
}

Program MakeProgram(const model::Graph& graph,
                    const kernels::Backend& backend,
                    std::int64_t batch,
                    bool training) {
  const model::Graph lowered = Lower(graph);
  return Assembly(lowered, LayoutChoice(lowered, backend, batch, training).Run()).Run();
}

}  // namespace adamant::graph
