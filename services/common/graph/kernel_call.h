#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "services/common/graph/executed_node.h"
#include "services/common/graph/memory_plan.h"
#include "services/common/graph/program.h"
#include "services/common/kernels/kernel.h"

namespace adamant::graph {

/// One call of a node's kernel: for the whole batch, or for one block of it. May be moved, but not
/// copied.
struct KernelCall {
  KernelCall() = default;
  KernelCall(KernelCall&&) = default;
  KernelCall& operator=(KernelCall&&) = default;

  std::size_t node = 0;
  kernels::Operands<float> operands;
  std::vector<const float*> inputs;  ///< what operands.inputs refers to
  std::vector<float*> input_errors;  ///< likewise
  bool first = true;                 ///< of its node's calls in a step, forward
  bool last = true;                  ///< likewise, so the first one backward
  bool runs_backward = false;
  std::int64_t in_features = 0;   ///< elements of an example
  std::int64_t out_features = 0;  ///< likewise
  struct Sum {
    std::span<const float> from;
    std::span<float> to;
  };
  std::vector<Sum> sums;  ///< after its backward pass
};

/// The calls of a program's nodes in the order of the forward pass, for batches of up to `batch`
/// examples, on the memory that `plan` lays out at `memory`. The parameters of `nodes` are bound.
std::vector<KernelCall> BindCalls(const Program& program,
                                  const MemoryPlan& plan,
                                  std::int64_t batch,
                                  float* memory,
                                  const std::vector<ExecutedNode>& nodes);

}  // namespace adamant::graph
