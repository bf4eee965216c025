#include "services/common/graph/kernel_call.h"

#include <algorithm>

namespace adamant::graph {
namespace {

using kernels::kLanes;

// Binds the calls of one program to its memory.
class Binder {
 public:
  Binder(const Program& program, const MemoryPlan& plan, std::int64_t batch, float* memory)
      : program_(program), plan_(plan), batch_(batch), memory_(memory) {}

  // The call of a node for the block-th block of examples; all there are unless it is blocked.
  [[nodiscard]] KernelCall Bind(int node, std::int64_t block) const {
    const model::Graph::Node& from = program_.graph.nodes[node];
    const NodeMemory& memory = plan_.nodes[node];
    KernelCall call;
    call.node = static_cast<std::size_t>(node);
    for (const int input : from.inputs) {
      call.inputs.push_back(At(input < 0 ? plan_.input : plan_.nodes[input].output, block));
    }
    for (const Place& error : memory.input_errors) {
      call.input_errors.push_back(At(error, block));
    }
    const bool blocked = program_.layouts[node].blocked();
    kernels::Operands<float>& operands = call.operands;
    operands.inputs = call.inputs;
    operands.output = At(memory.output, block);
    operands.kept = reinterpret_cast<std::uint8_t*>(At(memory.kept, block));
    operands.output_error = At(memory.error, block);
    operands.input_errors = call.input_errors;
    operands.begin = blocked ? block * kLanes : 0;
    operands.missing = blocked ? std::max<std::int64_t>(operands.begin + kLanes - batch_, 0) : 0;
    call.runs_backward = memory.error.exists();
    call.in_features = *ElementCount(program_.SpecOf(node, batch_, false).inputs[0]);
    call.out_features = *ElementCount(from.output);
    for (const NodeMemory::Sum& sum : memory.sums) {
      const auto count = static_cast<std::size_t>(RowsOfSum(sum, blocked, operands.missing) *
                                                  OutputElements(sum.input));
      call.sums.push_back({{At(sum.from, block), count}, {At(sum.to, block), count}});
    }
    return call;
  }

 private:
  [[nodiscard]] float* At(const Place& place, std::int64_t block) const {
    return place.exists() ? memory_ + place.offset + block * place.stride : nullptr;
  }

  [[nodiscard]] std::int64_t RowsOfSum(const NodeMemory::Sum& sum,
                                       bool blocked,
                                       std::int64_t missing) const {
    // Maps with the batch innermost fill their last block.
    const bool whole = program_.layouts[sum.input].output == kernels::MapLayout::kBatchInnermost;
    return (blocked ? kLanes : batch_) - (whole ? 0 : missing);
  }

  [[nodiscard]] std::int64_t OutputElements(int node) const {
    return *ElementCount(program_.graph.nodes[node].output);
  }

  const Program& program_;
  const MemoryPlan& plan_;
  const std::int64_t batch_;
  float* const memory_;
};

void BindGradients(const ExecutedNode& node, kernels::Operands<float>& operands) {
  operands.weight_gradient = node.weight.gradient;
  operands.weight_begin = node.weight.offset;
  operands.bias_gradient = node.bias.gradient;
}

}  // namespace

std::vector<KernelCall> BindCalls(const Program& program,
                                  const MemoryPlan& plan,
                                  std::int64_t batch,
                                  float* memory,
                                  const std::vector<ExecutedNode>& nodes) {
  const Binder binder(program, plan, batch, memory);
  std::vector<KernelCall> calls;
  for (const Program::Segment& segment : program.segments) {
    const std::int64_t blocks = segment.blocked ? (batch + kLanes - 1) / kLanes : 1;
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (int i = segment.begin; i < segment.end; ++i) {
        KernelCall& call = calls.emplace_back(binder.Bind(i, block));
        call.first = block == 0;
        call.last = block == blocks - 1;
        BindGradients(nodes[call.node], call.operands);
      }
    }
  }
  return calls;
}

}  // namespace adamant::graph
