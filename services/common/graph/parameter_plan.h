#pragma once

#include <cstdint>
#include <vector>

#include "services/common/graph/program.h"

namespace adamant::graph {

/// A parameter tensor's place in the flat parameters, and its memory in a context.
struct ParameterPlace {
  std::int64_t begin = 0;  ///< in the flat parameters
  std::int64_t count = 0;
  std::int64_t copy = -1;      ///< of the shared values; -1: the kernel reads those
  std::int64_t gradient = -1;  ///< until it is handed over; -1: the kernel hands over pieces
};

struct ParameterPlan {
  std::vector<ParameterPlace> places;  ///< by parameter
  std::int64_t parameters = 0;         ///< elements of all
  std::int64_t floats = 0;             ///< of the memory that `copy` and `gradient` lie in
};

/// Properties of a node's kernel that the plan must know.
struct ParameterTraits {
  bool reads_shared_weights = false;
  bool hands_over_weight_gradient = false;
};

/// Gradients are handed over after a node's last call, so that one node's memory serves all others;
/// but nodes that run together block by block finish theirs together, and have memory each.
ParameterPlan PlanParameters(const Program& program,
                             const std::vector<ParameterTraits>& traits,
                             bool training);

}  // namespace adamant::graph
