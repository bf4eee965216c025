#include "services/common/graph/executor.h"

#include <algorithm>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"
#include "services/common/graph/memory_plan.h"
#include "services/common/graph/parameter_plan.h"
#include "services/common/graph/program.h"
#include "services/common/graph/stopwatch.h"
#include "services/common/kernels/vector_ops.h"

namespace adamant::graph {
namespace {

std::vector<KernelTraits> KernelTraitsOf(const std::vector<ExecutedNode>& nodes) {
  std::vector<KernelTraits> traits;
  for (const ExecutedNode& node : nodes) {
    traits.push_back({.in_place = node.kernel->in_place(),
                      .needs_inputs = node.kernel->NeedsInputs(),
                      .needs_output = node.kernel->NeedsOutput(),
                      .kept_bytes = node.kernel->KeptBytes()});
  }
  return traits;
}

std::vector<ParameterTraits> ParameterTraitsOf(const std::vector<ExecutedNode>& nodes) {
  std::vector<ParameterTraits> traits;
  for (const ExecutedNode& node : nodes) {
    traits.push_back({node.kernel->ReadsSharedWeights(), node.kernel->HandsOverWeightGradient()});
  }
  return traits;
}

}  // namespace

Executor::Executor(std::unique_ptr<kernels::Backend> backend) : backend_(std::move(backend)) {}

absl::StatusOr<Executor> Executor::Create(const model::Graph& graph,
                                          std::int64_t batch,
                                          std::unique_ptr<kernels::Backend> backend,
                                          bool training) {
  Executor executor(std::move(backend));
  ADAMANT_RETURN_IF_ERROR(executor.Build(graph, batch, training));
  return executor;
}

absl::Status Executor::Build(const model::Graph& graph, std::int64_t batch, bool training) {
  const Program program = MakeProgram(graph, *backend_, batch, training);
  ADAMANT_ASSIGN_OR_RETURN(nodes_, MakeNodes(program, *backend_, batch, training));
  const MemoryPlan plan = PlanMemory(program, KernelTraitsOf(nodes_), batch, training);
  const ParameterPlan parameters = PlanParameters(program, ParameterTraitsOf(nodes_), training);
  parameter_floats_ = static_cast<std::size_t>(parameters.parameters);
  block_ = FloatBlock(static_cast<std::size_t>(plan.floats + parameters.floats));
  float* const memory = block_.data();
  BindParameters(program, parameters, memory + plan.floats, nodes_);
  calls_ = BindCalls(program, plan, batch, memory, nodes_);
  const auto floats = [&](std::int64_t features) {
    return static_cast<std::size_t>(batch * features);
  };
  const NodeMemory& output = plan.nodes[program.graph.output];
  input_ = {memory + plan.input.offset, floats(*ElementCount(graph.input))};
  logits_ = {memory + output.output.offset, floats(graph.classes)};
  if (output.error.exists()) {
    loss_error_ = {memory + output.error.offset, floats(graph.classes)};
  }
  return absl::OkStatus();
}

void Executor::SetDropout(std::uint64_t seed) {
  for (KernelCall& call : calls_) {
    call.operands.dropout = true;
    call.operands.seed = MixSeed(seed, nodes_[call.node].dropout);
  }
}

void Executor::ClearDropout() {
  for (KernelCall& call : calls_) {
    call.operands.dropout = false;
  }
}

void Executor::Forward(std::span<const float> weights) {
  for (KernelCall& call : calls_) {
    RunForward(call, weights);
  }
}

void Executor::Backward(kernels::GradientSink& sink) {
  for (std::size_t i = calls_.size(); i-- > 0;) {
    RunBackward(calls_[i], sink);
  }
}

void Executor::TimeForward(std::span<const float> weights, std::span<double> seconds) {
  for (KernelCall& call : calls_) {
    const Stopwatch watch;
    RunForward(call, weights);
    seconds[call.node] += watch.Seconds();
  }
}

void Executor::TimeBackward(kernels::GradientSink& sink, std::span<double> seconds) {
  for (std::size_t i = calls_.size(); i-- > 0;) {
    const Stopwatch watch;
    RunBackward(calls_[i], sink);
    seconds[calls_[i].node] += watch.Seconds();
  }
}

void Executor::RunForward(KernelCall& call, std::span<const float> weights) {
  ExecutedNode& node = nodes_[call.node];
  if (node.parameter >= 0) {
    if (call.first) {
      node.weight_values = node.weight.Values(weights);
      node.bias_values = node.bias.Values(weights);
    }
    call.operands.weight = node.weight_values;
    call.operands.bias = node.bias_values;
  }
  call.operands.first = call.first;
  node.kernel->Forward(call.operands);
}

void Executor::RunBackward(KernelCall& call, kernels::GradientSink& sink) {
  if (!call.runs_backward) {
    return;
  }
  const ExecutedNode& node = nodes_[call.node];
  call.operands.first = call.last;
  call.operands.sink = &sink;
  node.kernel->Backward(call.operands);
  if (call.first) {
    node.weight.HandOver(sink);
    node.bias.HandOver(sink);
  }
  for (const KernelCall::Sum& sum : call.sums) {
    kernels::AddTo(sum.from, sum.to);
  }
}

std::vector<NodeProfile> Executor::Nodes() const {
  std::vector<NodeProfile> nodes;
  for (const ExecutedNode& node : nodes_) {
    nodes.push_back(node.profile);
  }
  return nodes;
}

FullyConnectedOperands Executor::OperandsOf(int parameter, std::int64_t batch) const {
  const auto call = std::find_if(calls_.begin(), calls_.end(), [&](const KernelCall& c) {
    return nodes_[c.node].is_fully_connected && nodes_[c.node].parameter == parameter;
  });
  ADAMANT_CHECK(call != calls_.end(), "the weight of a fully connected layer");
  const auto floats = [&](std::int64_t features) {
    return static_cast<std::size_t>(batch * features);
  };
  return {.activations = {call->inputs[0], floats(call->in_features)},
          .errors = {call->operands.output_error, floats(call->out_features)}};
}

}  // namespace adamant::graph
