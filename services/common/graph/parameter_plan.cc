#include "services/common/graph/parameter_plan.h"

#include <algorithm>

namespace adamant::graph {
namespace {

constexpr std::int64_t kCacheLine = 64 / sizeof(float);

/// Takes the next `count` floats behind `end`; whole cache lines.
std::int64_t Append(std::int64_t count, std::int64_t& end) {
  const std::int64_t begin = end;
  end += (count + kCacheLine - 1) / kCacheLine * kCacheLine;
  return begin;
}

void PlaceCopies(const Program& program,
                 const std::vector<ParameterTraits>& traits,
                 ParameterPlan& plan) {
  for (std::size_t i = 0; i < traits.size(); ++i) {
    const model::Graph::Node& node = program.graph.nodes[i];
    if (node.weight < 0) {
      continue;
    }
    ParameterPlace& weight = plan.places[static_cast<std::size_t>(node.weight)];
    ParameterPlace& bias = plan.places[static_cast<std::size_t>(node.bias)];
    if (!traits[i].reads_shared_weights) {
      weight.copy = Append(weight.count, plan.floats);
    }
    bias.copy = Append(bias.count, plan.floats);
  }
}

void PlaceGradients(const Program& program,
                    const std::vector<ParameterTraits>& traits,
                    ParameterPlan& plan) {
  const std::int64_t begin = plan.floats;
  for (const Program::Segment& segment : program.segments) {
    std::int64_t end = begin;
    for (int i = segment.begin; i < segment.end; ++i) {
      const auto index = static_cast<std::size_t>(i);
      const model::Graph::Node& node = program.graph.nodes[index];
      if (node.weight < 0) {
        continue;
      }
      end = segment.blocked ? end : begin;
      ParameterPlace& weight = plan.places[static_cast<std::size_t>(node.weight)];
      ParameterPlace& bias = plan.places[static_cast<std::size_t>(node.bias)];
      if (!traits[index].hands_over_weight_gradient) {
        weight.gradient = Append(weight.count, end);
      }
      bias.gradient = Append(bias.count, end);
      plan.floats = std::max(plan.floats, end);
    }
  }
}

}  // namespace

ParameterPlan PlanParameters(const Program& program,
                             const std::vector<ParameterTraits>& traits,
                             bool training) {
  ParameterPlan plan;
  for (const Parameter& parameter : program.graph.parameters) {
    const std::int64_t count = *ElementCount(parameter.shape);
    plan.places.push_back({.begin = plan.parameters, .count = count});
    plan.parameters += count;
  }
  PlaceCopies(program, traits, plan);
  if (training) {
    PlaceGradients(program, traits, plan);
  }
  return plan;
}

}  // namespace adamant::graph
