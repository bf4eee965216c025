#include "services/common/graph/context.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"
#include "services/common/graph/lower.h"
#include "services/common/graph/memory_plan.h"
#include "services/common/kernels/hogwild.h"
#include "services/common/kernels/softmax_cross_entropy.h"
#include "services/common/kernels/thread_mode.h"
#include "services/common/kernels/transpose.h"
#include "services/common/kernels/vector_ops.h"

namespace adamant::graph {
namespace {

constexpr std::align_val_t kCacheLine{64};
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 20;
constexpr std::int64_t kMostFloats = std::int64_t{1} << 40;

/// A parameter tensor's place in the arrays of weights and gradients, and the copy that kernels
/// read which cannot read the shared weights.
struct Tensor {
  std::size_t offset = 0;
  std::size_t count = 0;
  float* copy = nullptr;  // null: the shared weights themselves

  /// What a kernel reads in this step, given the shared weights.
  [[nodiscard]] const float* Values(std::span<const float> weights) const {
    if (copy == nullptr) {
      return weights.data() + offset;
    }
    kernels::HogwildLoad(weights.subspan(offset, count), {copy, count});
    return copy;
  }
};

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

struct Context::Node {
  std::unique_ptr<kernels::Kernel<float>> kernel;
  kernels::Operands<float> operands;
  std::vector<const float*> inputs;  // what operands.inputs refers to
  std::vector<float*> input_errors;  // likewise
  bool runs_backward = false;
  bool is_fully_connected = false;
  int parameter = -1;  // of its weight, as an index into the graph's parameters; -1 without
  Tensor weight;
  Tensor bias;
  std::int64_t in_features = 0;   // elements of an example
  std::int64_t out_features = 0;  // likewise
  struct Sum {
    std::span<const float> from;
    std::span<float> to;
  };
  std::vector<Sum> sums;  // after its backward pass
};

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
  const model::Graph lowered = Lower(graph);
  if (Total(lowered, max_batch_) >= kMostFloats) {
    return absl::ResourceExhaustedError("the activations of a batch of " +
                                        std::to_string(max_batch_) + " examples take over 4 TB");
  }
  classes_ = graph.classes;
  input_shape_ = graph.input;
  training_ = training;
  output_ = lowered.output;
  labels_.resize(static_cast<std::size_t>(max_batch_));
  ADAMANT_ASSIGN_OR_RETURN(backend_, MakeBackend(backend));
  ADAMANT_RETURN_IF_ERROR(MakeKernels(lowered));
  std::vector<KernelTraits> traits;
  for (const Node& node : nodes_) {
    traits.push_back({node.kernel->in_place(), node.kernel->NeedsOutput()});
  }
  const MemoryPlan plan = PlanMemory(lowered, traits, max_batch_, backend_->layout(), training);
  // The private copies of parameters lie behind the plan's floats, in the same order as the
  // parameters and as far apart.
  for (const Parameter& parameter : lowered.parameters) {
    parameter_floats_ += static_cast<std::size_t>(*ElementCount(parameter.shape));
  }
  const std::size_t floats = static_cast<std::size_t>(plan.floats) + parameter_floats_;
  block_.reset(new (kCacheLine) float[floats]());
  BindMemory(lowered, plan);
  BindParameters(lowered, block_.get() + plan.floats);
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

absl::Status Context::MakeKernels(const model::Graph& lowered) {
  for (const model::Graph::Node& from : lowered.nodes) {
    kernels::Spec spec = {.layer = from.layer,
                          .inputs = {},
                          .output = from.output,
                          .batch = max_batch_,
                          .training = training_,
                          .layout = backend_->layout()};
    for (const int input : from.inputs) {
      spec.inputs.push_back(input < 0 ? lowered.input : lowered.nodes[input].output);
    }
    Node& node = nodes_.emplace_back();
    node.in_features = *ElementCount(spec.inputs[0]);
    node.out_features = *ElementCount(spec.output);
    ADAMANT_ASSIGN_OR_RETURN(node.kernel, backend_->Make(spec));
  }
  return absl::OkStatus();
}

void Context::BindMemory(const model::Graph& lowered, const MemoryPlan& plan) {
  float* const block = block_.get();
  const auto at = [&](std::int64_t offset) { return offset < 0 ? nullptr : block + offset; };
  const std::int64_t input_floats = max_batch_ * *ElementCount(input_shape_);
  input_ = {at(plan.input), static_cast<std::size_t>(input_floats)};
  maps_ = at(plan.maps);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    const NodeMemory& memory = plan.nodes[i];
    for (const int input : lowered.nodes[i].inputs) {
      node.inputs.push_back(input < 0 ? maps_ : at(plan.nodes[input].output));
    }
    for (const std::int64_t error : memory.input_errors) {
      node.input_errors.push_back(at(error));
    }
    node.operands.inputs = node.inputs;
    node.operands.output = at(memory.output);
    node.operands.output_error = at(memory.error);
    node.operands.input_errors = node.input_errors;
    node.runs_backward = memory.error >= 0;
    if (node.runs_backward && static_cast<int>(i) == output_) {
      loss_error_ = {at(memory.error), static_cast<std::size_t>(max_batch_ * classes_)};
    }
    for (const NodeMemory::Sum& sum : memory.sums) {
      const auto count = static_cast<std::size_t>(sum.count);
      node.sums.push_back({{at(sum.from), count}, {at(sum.to), count}});
    }
  }
}

void Context::BindParameters(const model::Graph& lowered, float* copies) {
  const auto bind = [&](int index) {
    Tensor tensor;
    for (int i = 0; i < index; ++i) {
      tensor.offset += static_cast<std::size_t>(*ElementCount(lowered.parameters[i].shape));
    }
    tensor.count = static_cast<std::size_t>(*ElementCount(lowered.parameters[index].shape));
    tensor.copy = copies + tensor.offset;
    return tensor;
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (lowered.nodes[i].weight < 0) {
      continue;
    }
    Node& node = nodes_[i];
    node.parameter = lowered.nodes[i].weight;
    node.is_fully_connected = lowered.nodes[i].layer.kind == model::LayerKind::kFullyConnected;
    node.weight = bind(lowered.nodes[i].weight);
    node.bias = bind(lowered.nodes[i].bias);
    if (node.kernel->ReadsSharedWeights()) {
      node.weight.copy = nullptr;
    }
  }
}

StepResult Context::Train(std::int64_t batch,
                          std::span<const float> weights,
                          std::span<float> gradients,
                          std::uint64_t dropout_seed) {
  ADAMANT_CHECK(training_, "the context was created for training");
  ADAMANT_CHECK(gradients.size() == parameter_floats_, "a gradient per parameter");
  const kernels::ThreadMode mode;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].operands.dropout = true;
    nodes_[i].operands.seed = MixSeed(dropout_seed, i);
  }
  Forward(batch, weights);
  last_batch_ = batch;
  const StepResult result = Measure(batch, loss_error_);
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    if (!node.runs_backward) {
      continue;
    }
    if (node.parameter >= 0) {
      node.operands.weight_gradient = gradients.data() + node.weight.offset;
      node.operands.bias_gradient = gradients.data() + node.bias.offset;
    }
    node.kernel->Backward(node.operands);
    for (const Node::Sum& sum : node.sums) {
      kernels::AddTo(sum.from, sum.to);
    }
  }
  return result;
}

StepResult Context::Evaluate(std::int64_t batch, std::span<const float> weights) {
  const kernels::ThreadMode mode;
  for (Node& node : nodes_) {
    node.operands.dropout = false;
  }
  Forward(batch, weights);
  return Measure(batch, {});
}

void Context::Forward(std::int64_t batch, std::span<const float> weights) {
  ADAMANT_CHECK(batch >= 1 && batch <= max_batch_, "the batch fits the context");
  ADAMANT_CHECK(weights.size() == parameter_floats_, "a weight per parameter");
  const std::int64_t features = *ElementCount(input_shape_);
  std::fill(input_.begin() + batch * features, input_.end(), 0.0f);
  if (maps_ != input_.data()) {
    const std::int64_t channels = input_shape_[0];
    kernels::Transpose<float>(max_batch_, channels, features / channels, input_.data(), maps_);
  }
  for (Node& node : nodes_) {
    if (node.parameter >= 0) {
      node.operands.weight = node.weight.Values(weights);
      node.operands.bias = node.bias.Values(weights);
    }
    node.kernel->Forward(node.operands);
  }
}

std::span<const float> Context::logits() const {
  const Node& output = nodes_[static_cast<std::size_t>(output_)];
  return {output.operands.output, static_cast<std::size_t>(max_batch_ * classes_)};
}

StepResult Context::Measure(std::int64_t batch, std::span<float> errors) const {
  const std::span<const std::int32_t> labels(labels_.data(), static_cast<std::size_t>(batch));
  const kernels::Loss loss =
      kernels::SoftmaxCrossEntropy<float>(classes_, logits(), labels, errors);
  return {.loss_sum = loss.sum, .correct = loss.correct};
}

FullyConnectedOperands Context::OperandsOf(int parameter) const {
  const auto node = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) {
    return n.is_fully_connected && n.parameter == parameter;
  });
  ADAMANT_CHECK(node != nodes_.end(), "the weight of a fully connected layer");
  ADAMANT_CHECK(last_batch_ > 0, "after a step of training");
  const auto floats = [&](std::int64_t features) {
    return static_cast<std::size_t>(last_batch_ * features);
  };
  return {.activations = {node->inputs[0], floats(node->in_features)},
          .errors = {node->operands.output_error, floats(node->out_features)}};
}

}  // namespace adamant::graph
