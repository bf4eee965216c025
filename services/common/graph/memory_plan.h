#pragma once

#include <cstdint>
#include <vector>

#include "services/common/graph/program.h"
#include "services/common/kernels/kernel.h"

namespace adamant::graph {

/// Floats in the block of memory. What a call for the n-th block of examples works on lies
/// n * stride further; a stride of 0 is memory that one block leaves to the next.
struct Place {
  std::int64_t offset = -1;  ///< -1: there is none
  std::int64_t stride = 0;

  [[nodiscard]] bool exists() const { return offset >= 0; }
  friend bool operator==(const Place&, const Place&) = default;
};

/// Places where a node's activations and errors lie.
struct NodeMemory {
  Place output;
  Place kept;   ///< what the forward pass keeps for the backward one; none: nothing
  Place error;  ///< none: no parameter in or above the node, so nobody asks for it
  std::vector<Place> input_errors;  ///< one per input; none: not asked for

  /// After the node's backward pass, per call: to += from, the errors of the output of node
  /// `input`. For inputs with several users.
  struct Sum {
    Place from;
    Place to;
    int input;
  };
  std::vector<Sum> sums;
};

struct MemoryPlan {
  std::vector<NodeMemory> nodes;
  Place input;              ///< the net's input, channels first
  std::int64_t floats = 0;  ///< size of the block
};

/// Properties of a node's kernel that the plan must know.
struct KernelTraits {
  kernels::InPlace in_place = kernels::InPlace::kNo;
  bool needs_inputs = true;
  bool needs_output = false;
  std::int64_t kept_bytes = 0;
};

/// Lays the activations of a program out, and its errors when training. Memory is used again as
/// soon as nobody needs what is there, in a blocked segment by the next block already; what the
/// inputs of fully connected layers, their errors and the logits hold stays until the next step. A
/// layer that can work in place shares the memory of the layer before it, if nobody else reads
/// that. The caller has checked that the sum of all outputs times batch is far from overflow.
MemoryPlan PlanMemory(const Program& program,
                      const std::vector<KernelTraits>& traits,
                      std::int64_t batch,
                      bool training);

}  // namespace adamant::graph
