#pragma once

#include <cstdint>
#include <vector>

#include "services/common/kernels/kernel.h"
#include "services/common/model/model.h"

namespace adamant::graph {

/// Where a node's activations and errors lie, as offsets in floats into one block of memory.
struct NodeMemory {
  std::int64_t output = 0;
  std::int64_t error = -1;  ///< -1: no parameter in or above the node, so nobody asks for it
  std::vector<std::int64_t> input_errors;  ///< one per input; -1: not asked for

  /// After the node's backward pass: block[to...] += block[from...]. For inputs with several users.
  struct Sum {
    std::int64_t from;
    std::int64_t to;
    std::int64_t count;
  };
  std::vector<Sum> sums;
};

struct MemoryPlan {
  std::vector<NodeMemory> nodes;
  std::int64_t input = 0;   ///< the net's input, channels first
  std::int64_t maps = 0;    ///< the same in the kernels' layout; equal to `input` when that is it
  std::int64_t floats = 0;  ///< size of the block
};

/// What the plan must know of a node's kernel.
struct KernelTraits {
  kernels::InPlace in_place = kernels::InPlace::kNo;
  bool needs_output = false;
};

/// Lays the activations of a lowered graph out, and its errors when training. A layer that can work
/// in place shares the memory of the layer before it, if nobody else reads that. The caller has
/// checked that the sum of all outputs times batch is far from overflow.
MemoryPlan PlanMemory(const model::Graph& graph,
                      const std::vector<KernelTraits>& traits,
                      std::int64_t batch,
                      kernels::MapLayout layout,
                      bool training);

}  // namespace adamant::graph
