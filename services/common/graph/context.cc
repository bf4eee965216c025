#include "services/common/graph/context.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/huge_pages.h"
#include "services/common/graph/context_calls.h"
#include "services/common/graph/memory_plan.h"
#include "services/common/graph/parameter_plan.h"
#include "services/common/graph/program.h"

namespace adamant::graph {
namespace {

using kernels::kLanes;

constexpr std::align_val_t kCacheLine{64};
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 20;
constexpr std::int64_t kMostFloats = std::int64_t{1} << 40;

std::int64_t Total(const model::Graph& graph, std::int64_t batch) {
  std::int64_t total = *ElementCount(graph.input);
  for (const model::Graph::Node& node : graph.nodes) {
    total += *ElementCount(node.output);  // at most 2^13 nodes of 2^48
  }
  return total > kMostFloats / batch ? kMostFloats : total * batch;
}

absl::StatusOr<std::unique_ptr<kernels::Backend>> MakeBackend(Backend backend) {
  if (backend == Backend::kOneDnn) {
    return kernels::MakeOneDnnBackend();
  }
  return kernels::MakeReferenceBackend();
}

}  // namespace

Context::Context() = default;
Context::~Context() = default;

void Context::FreeBlock::operator()(float* block) const { ::operator delete[](block, kCacheLine); }

absl::StatusOr<std::unique_ptr<Context>> Context::Create(const model::Graph& graph,
                                                         std::int64_t max_batch,
                                                         Backend backend,
                                                         bool training) {
  if (max_batch < 1 || max_batch > kLargestBatch) {
    return absl::InvalidArgumentError("a batch must have 1 to " + std::to_string(kLargestBatch) +
                                      " examples, not " + std::to_string(max_batch));
  }
  std::unique_ptr<Context> context(new Context());
  context->max_batch_ = max_batch;
  try {
    ADAMANT_RETURN_IF_ERROR(context->Build(graph, backend, training));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for a batch of " + std::to_string(max_batch) +
                                        " examples; try a smaller one");
  }
  return context;
}

absl::Status Context::Build(const model::Graph& graph, Backend backend, bool training) {
  if (Total(graph, max_batch_) >= kMostFloats) {
    return absl::ResourceExhaustedError("the activations of a batch of " +
                                        std::to_string(max_batch_) + " examples take over 4 TB");
  }
  classes_ = graph.classes;
  input_shape_ = graph.input;
  training_ = training;
  labels_.resize(static_cast<std::size_t>(max_batch_));
  ADAMANT_ASSIGN_OR_RETURN(backend_, MakeBackend(backend));
  const Program program = MakeProgram(graph, *backend_, max_batch_, training);
  ADAMANT_RETURN_IF_ERROR(MakeKernels(program));
  std::vector<KernelTraits> traits;
  std::vector<ParameterTraits> parameter_traits;
  for (const Node& node : nodes_) {
    traits.push_back({.in_place = node.kernel->in_place(),
                      .needs_inputs = node.kernel->NeedsInputs(),
                      .needs_output = node.kernel->NeedsOutput(),
                      .kept_bytes = node.kernel->KeptBytes()});
    parameter_traits.push_back(
        {node.kernel->ReadsSharedWeights(), node.kernel->HandsOverWeightGradient()});
  }
  const MemoryPlan plan = PlanMemory(program, traits, max_batch_, training);
  const ParameterPlan parameters = PlanParameters(program, parameter_traits, training);
  parameter_floats_ = static_cast<std::size_t>(parameters.parameters);
  const auto floats = static_cast<std::size_t>(plan.floats + parameters.floats);
  block_bytes_ = static_cast<std::int64_t>(floats * sizeof(float));
  block_.reset(new (kCacheLine) float[floats]);
  PreferHugePages(block_.get(), floats * sizeof(float));
  std::fill_n(block_.get(), floats, 0.0f);
  BindMemory(program, plan);
  BindParameters(program, parameters, block_.get() + plan.floats);
  WarmUp();
  return absl::OkStatus();
}

void Context::WarmUp() {
  const std::vector<float> weights(parameter_floats_);
  if (training_) {
    std::vector<float> gradients(parameter_floats_);
    Train(max_batch_, weights, gradients, 0);
    last_batch_ = 0;
  } else {
    Evaluate(max_batch_, weights);
  }
}

absl::Status Context::MakeKernels(const Program& program) {
  std::uint64_t dropouts = 0;
  for (int i = 0; i < static_cast<int>(program.graph.nodes.size()); ++i) {
    Node& node = nodes_.emplace_back();
    node.dropout = dropouts;
    dropouts += program.graph.nodes[i].layer.kind == model::LayerKind::kDropout ? 1 : 0;
    const kernels::Spec spec = program.SpecOf(i, max_batch_, training_);
    ADAMANT_ASSIGN_OR_RETURN(node.kernel, backend_->Make(spec));
    node.profile = {.layer = spec.layer.name,
                    .kernel = node.kernel->name(),
                    .layout = spec.layout,
                    .is_maps = spec.output.size() == 3,
                    .output_bytes = static_cast<std::int64_t>(sizeof(float)) * max_batch_ *
                                    *ElementCount(spec.output),
                    .flop_per_example = program.FlopPerExample(i)};
  }
  return absl::OkStatus();
}

void Context::BindMemory(const Program& program, const MemoryPlan& plan) {
  const auto floats = [&](std::int64_t features) {
    return static_cast<std::size_t>(max_batch_ * features);
  };
  const NodeMemory& output = plan.nodes[program.graph.output];
  input_ = {block_.get() + plan.input.offset, floats(*ElementCount(input_shape_))};
  logits_ = {block_.get() + output.output.offset, floats(classes_)};
  if (output.error.exists()) {
    loss_error_ = {block_.get() + output.error.offset, floats(classes_)};
  }
  for (const Program::Segment& segment : program.segments) {
    const std::int64_t blocks = segment.blocked ? (max_batch_ + kLanes - 1) / kLanes : 1;
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (int i = segment.begin; i < segment.end; ++i) {
        BindCall(program, plan, i, block);
        calls_.back().first = block == 0;
        calls_.back().last = block == blocks - 1;
      }
    }
  }
}

void Context::BindCall(const Program& program,
                       const MemoryPlan& plan,
                       int node,
                       std::int64_t block) {
  const auto at = [&](const Place& place) {
    return place.exists() ? block_.get() + place.offset + block * place.stride : nullptr;
  };
  const model::Graph::Node& from = program.graph.nodes[node];
  const NodeMemory& memory = plan.nodes[node];
  Call& call = calls_.emplace_back();
  call.node = static_cast<std::size_t>(node);
  for (const int input : from.inputs) {
    call.inputs.push_back(at(input < 0 ? plan.input : plan.nodes[input].output));
  }
  for (const Place& error : memory.input_errors) {
    call.input_errors.push_back(at(error));
  }
  const bool blocked = program.layouts[node].blocked();
  kernels::Operands<float>& operands = call.operands;
  operands.inputs = call.inputs;
  operands.output = at(memory.output);
  operands.kept = reinterpret_cast<std::uint8_t*>(at(memory.kept));
  operands.output_error = at(memory.error);
  operands.input_errors = call.input_errors;
  operands.begin = blocked ? block * kLanes : 0;
  operands.missing = blocked ? std::max<std::int64_t>(operands.begin + kLanes - max_batch_, 0) : 0;
  call.runs_backward = memory.error.exists();
  call.in_features = *ElementCount(program.SpecOf(node, max_batch_, training_).inputs[0]);
  call.out_features = *ElementCount(from.output);
  for (const NodeMemory::Sum& sum : memory.sums) {
    // Maps with the batch innermost fill their last block.
    const bool whole = program.layouts[sum.input].output == kernels::MapLayout::kBatchInnermost;
    const std::int64_t rows = (blocked ? kLanes : max_batch_) - (whole ? 0 : operands.missing);
    const auto count =
        static_cast<std::size_t>(rows * *ElementCount(program.graph.nodes[sum.input].output));
    call.sums.push_back({{at(sum.from), count}, {at(sum.to), count}});
  }
}

void Context::BindParameters(const Program& program, const ParameterPlan& plan, float* block) {
  const auto bind = [&](int index) {
    const ParameterPlace& place = plan.places[static_cast<std::size_t>(index)];
    const auto at = [&](std::int64_t offset) { return offset < 0 ? nullptr : block + offset; };
    return Tensor{.offset = static_cast<std::size_t>(place.begin),
                  .count = static_cast<std::size_t>(place.count),
                  .copy = at(place.copy),
                  .gradient = at(place.gradient)};
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const model::Graph::Node& from = program.graph.nodes[i];
    if (from.weight < 0) {
      continue;
    }
    Node& node = nodes_[i];
    node.parameter = from.weight;
    node.is_fully_connected = from.layer.kind == model::LayerKind::kFullyConnected;
    node.weight = bind(from.weight);
    node.bias = bind(from.bias);
  }
  for (Call& call : calls_) {
    const Node& node = nodes_[call.node];
    call.operands.weight_gradient = node.weight.gradient;
    call.operands.weight_begin = node.weight.offset;
    call.operands.bias_gradient = node.bias.gradient;
  }
}

}  // namespace adamant::graph
