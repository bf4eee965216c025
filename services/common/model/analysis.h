#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "services/common/model/model.h"

namespace adamant::model::internal {

/// Findings of one reading of a net: everything that Check reports and BuildGraph needs.
struct Analysis {
  std::vector<Problem> problems;
  std::vector<int> order;                ///< layers, inputs first; empty when there are problems
  std::vector<std::vector<int>> inputs;  ///< by layer: indices of layers, -1 for the net's input
  std::vector<std::optional<Shape>> shapes;  ///< by layer: its output; nullopt when not known
  int output = -1;                           ///< the layer with the logits
};

Analysis Analyse(const Net& net);

/// The problems in a layer's own fields, apart from its name and inputs; `layer` of the results is
/// left at -1.
std::vector<Problem> CheckFields(const Layer& layer);

/// The shape of the layer's output, or why there is none. The layer passes CheckFields and has at
/// least one input; every input passes ElementCount and has extents of 1 or more.
std::variant<Shape, Problem> InferShape(const Layer& layer, const std::vector<Shape>& inputs);

/// The shape of the layer's weights in the canonical layout; nullopt when it has none.
std::optional<Shape> WeightShape(const Layer& layer, const Shape& input);

std::string_view KindName(LayerKind kind);

}  // namespace adamant::model::internal
