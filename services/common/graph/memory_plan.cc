#include "services/common/graph/memory_plan.h"

namespace adamant::graph {
namespace {

class Planner {
 public:
  Planner(const model::Graph& graph, const std::vector<KernelTraits>& traits, std::int64_t batch)
      : graph_(graph), traits_(traits), batch_(batch), users_(graph.nodes.size(), 0) {
    plan_.nodes.resize(graph.nodes.size());
    for (const model::Graph::Node& node : graph.nodes) {
      for (const int input : node.inputs) {
        if (input >= 0) {
          ++users_[input];
        }
      }
    }
  }

  void PlaceInput(kernels::MapLayout layout) {
    const Shape& shape = graph_.input;
    plan_.input = plan_.maps = Reserve(Floats(shape));
    const bool same =
        layout == kernels::MapLayout::kChannelsFirst || shape[0] == 1 || shape[1] * shape[2] == 1;
    if (!same) {
      plan_.maps = Reserve(Floats(shape));
    }
  }

  void PlaceOutputs() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      plan_.nodes[i].output = SharesInput(i) ? plan_.nodes[graph_.nodes[i].inputs[0]].output
                                             : Reserve(Floats(graph_.nodes[i].output));
    }
  }

  /// Backwards: a node's error lies where its first user writes it; further users write elsewhere
  /// and add.
  void PlaceErrors() {
    const std::vector<bool> wanted = NodesOnGradientPath();
    plan_.nodes[graph_.output].error = Reserve(Floats(graph_.nodes[graph_.output].output));
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const model::Graph::Node& node = graph_.nodes[i];
      NodeMemory& memory = plan_.nodes[i];
      memory.input_errors.assign(node.inputs.size(), -1);
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const int input = node.inputs[k];
        if (input < 0 || !wanted[input]) {
          continue;
        }
        const std::int64_t floats = Floats(graph_.nodes[input].output);
        std::int64_t& error = plan_.nodes[input].error;
        memory.input_errors[k] = SharesInput(i) ? memory.error : Reserve(floats);
        if (error < 0) {
          error = memory.input_errors[k];
        } else {
          memory.sums.push_back({memory.input_errors[k], error, floats});
        }
      }
    }
  }

  MemoryPlan Take() && { return std::move(plan_); }

 private:
  [[nodiscard]] std::int64_t Floats(const Shape& shape) const {
    return batch_ * *ElementCount(shape);
  }

  std::int64_t Reserve(std::int64_t floats) {
    constexpr std::int64_t kCacheLine = 64 / sizeof(float);
    const std::int64_t begin = plan_.floats;
    plan_.floats += (floats + kCacheLine - 1) / kCacheLine * kCacheLine;
    return begin;
  }

  [[nodiscard]] bool SharesInput(std::size_t i) const {
    const int input = graph_.nodes[i].inputs[0];
    if (input < 0 || users_[input] > 1) {
      return false;
    }
    switch (traits_[i].in_place) {
      case kernels::InPlace::kNo:
        return false;
      case kernels::InPlace::kSameValues:
        return true;
      case kernels::InPlace::kOverwrites:
        break;
    }
    // What a flatten shares belongs to the layer before it too.
    int owner = input;
    while (traits_[owner].in_place == kernels::InPlace::kSameValues && SharesInput(owner)) {
      owner = graph_.nodes[owner].inputs[0];
    }
    return !traits_[owner].needs_output;
  }

  /// Nodes with parameters of their own or above them.
  [[nodiscard]] std::vector<bool> NodesOnGradientPath() const {
    std::vector<bool> on_path(graph_.nodes.size(), false);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      on_path[i] = graph_.nodes[i].weight >= 0;
      for (const int input : graph_.nodes[i].inputs) {
        on_path[i] = on_path[i] || (input >= 0 && on_path[input]);
      }
    }
    return on_path;
  }

  const model::Graph& graph_;
  const std::vector<KernelTraits>& traits_;
  const std::int64_t batch_;
  std::vector<int> users_;  // by node: how many inputs it is
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan PlanMemory(const model::Graph& graph,
                      const std::vector<KernelTraits>& traits,
                      std::int64_t batch,
                      kernels::MapLayout layout,
                      bool training) {
  Planner planner(graph, traits, batch);
  planner.PlaceInput(layout);
  planner.PlaceOutputs();
  if (training) {
    planner.PlaceErrors();
  }
  return std::move(planner).Take();
}

}  // namespace adamant::graph
