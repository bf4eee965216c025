#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "services/common/kernels/kernel.h"

namespace adamant::graph {

/// Way in which a context executes one node of its program, and what that takes.
struct NodeProfile {
  std::string layer;
  std::string kernel;                 ///< Kernel::name
  kernels::MapLayout layout{};        ///< of its output
  bool is_maps = false;               ///< features have one layout only
  std::int64_t output_bytes = 0;      ///< of the largest batch
  std::int64_t flop_per_example = 0;  ///< forward and backward; 0 without parameters
  double seconds = 0;  ///< of a step: forward, backward and what the sink does with its gradient
};

/// "channels last", "features".
std::string LayoutName(const NodeProfile& node);

/// "conv1: batch-innermost AVX-512 (batch innermost); …": what executes the nodes, in their order.
std::string KernelList(std::span<const NodeProfile> nodes);

struct ProfileOptions {
  int steps = 31;                                            ///< at most; one at least is taken
  double seconds = std::numeric_limits<double>::infinity();  ///< after which none is begun
  std::function<void(int done)> on_step = {};                ///< after each
};

/// A step of training of the largest batch, node by node in the order of execution.
struct StepProfile {
  std::vector<NodeProfile> nodes;
  double seconds = 0;             ///< of the whole step, as Train takes it
  std::int64_t memory_bytes = 0;  ///< that the context holds
};

}  // namespace adamant::graph
