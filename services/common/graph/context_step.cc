#include <algorithm>
#include <chrono>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/rng.h"
#include "services/common/graph/context_calls.h"
#include "services/common/kernels/softmax_cross_entropy.h"
#include "services/common/kernels/thread_mode.h"
#include "services/common/kernels/vector_ops.h"

namespace adamant::graph {
namespace {

/// Keeps the whole gradient.
class GradientArray final : public kernels::GradientSink {
 public:
  explicit GradientArray(std::span<float> gradients) : gradients_(gradients) {}

  void Take(std::size_t begin, std::span<float> gradient) override {
    std::copy(gradient.begin(), gradient.end(), gradients_.subspan(begin).begin());
  }

 private:
  const std::span<float> gradients_;
};

class Stopwatch {
 public:
  [[nodiscard]] double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

StepResult Context::Train(std::int64_t batch,
                          std::span<const float> weights,
                          std::span<float> gradients,
                          std::uint64_t dropout_seed) {
  ADAMANT_CHECK(gradients.size() == parameter_floats_, "a gradient per parameter");
  GradientArray array(gradients);
  return Train(batch, weights, array, dropout_seed);
}

StepResult Context::Train(std::int64_t batch,
                          std::span<const float> weights,
                          kernels::GradientSink& sink,
                          std::uint64_t dropout_seed) {
  ADAMANT_CHECK(training_, "the context was created for training");
  const kernels::ThreadMode mode;
  for (Call& call : calls_) {
    call.operands.dropout = true;
    call.operands.seed = MixSeed(dropout_seed, nodes_[call.node].dropout);
  }
  Forward(batch, weights);
  last_batch_ = batch;
  const StepResult result = Measure(batch, loss_error_);
  for (std::size_t i = calls_.size(); i-- > 0;) {
    RunBackward(calls_[i], sink);
  }
  return result;
}

void Context::RunBackward(Call& call, kernels::GradientSink& sink) {
  if (!call.runs_backward) {
    return;
  }
  const Node& node = nodes_[call.node];
  call.operands.first = call.last;
  call.operands.sink = &sink;
  node.kernel->Backward(call.operands);
  if (call.first) {
    node.weight.HandOver(sink);
    node.bias.HandOver(sink);
  }
  for (const Call::Sum& sum : call.sums) {
    kernels::AddTo(sum.from, sum.to);
  }
}

StepProfile Context::Profile(const ProfileOptions& options,
                             std::span<const float> weights,
                             kernels::GradientSink& sink) {
  std::vector<std::vector<double>> of_nodes(nodes_.size());
  std::vector<double> of_steps;
  const Stopwatch all;
  for (int step = 0; step == 0 || (step < options.steps && all.Seconds() < options.seconds);
       ++step) {
    const std::vector<double> seconds = TimeCalls(weights, sink);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      of_nodes[i].push_back(seconds[i]);
    }
    const Stopwatch whole;
    Train(max_batch_, weights, sink, 0);
    of_steps.push_back(whole.Seconds());
    if (options.on_step) {
      options.on_step(step + 1);
    }
  }
  StepProfile profile = {
      .nodes = Nodes(), .seconds = Median(of_steps), .memory_bytes = block_bytes_};
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    profile.nodes[i].seconds = Median(of_nodes[i]);
  }
  return profile;
}

std::vector<NodeProfile> Context::Nodes() const {
  std::vector<NodeProfile> nodes;
  for (const Node& node : nodes_) {
    nodes.push_back(node.profile);
  }
  return nodes;
}

std::vector<double> Context::TimeCalls(std::span<const float> weights,
                                       kernels::GradientSink& sink) {
  ADAMANT_CHECK(training_, "the context was created for training");
  const kernels::ThreadMode mode;
  std::vector<double> seconds(nodes_.size());
  Begin(max_batch_, weights);
  for (Call& call : calls_) {
    const Stopwatch watch;
    RunForward(call, weights);
    seconds[call.node] += watch.Seconds();
  }
  Measure(max_batch_, loss_error_);
  for (std::size_t i = calls_.size(); i-- > 0;) {
    const Stopwatch watch;
    RunBackward(calls_[i], sink);
    seconds[calls_[i].node] += watch.Seconds();
  }
  return seconds;
}

StepResult Context::Evaluate(std::int64_t batch, std::span<const float> weights) {
  const kernels::ThreadMode mode;
  for (Call& call : calls_) {
    call.operands.dropout = false;
  }
  Forward(batch, weights);
  return Measure(batch, {});
}

void Context::Begin(std::int64_t batch, std::span<const float> weights) {
  ADAMANT_CHECK(batch >= 1 && batch <= max_batch_, "the batch fits the context");
  ADAMANT_CHECK(weights.size() == parameter_floats_, "a weight per parameter");
  const std::int64_t features = *ElementCount(input_shape_);
  std::fill(input_.begin() + batch * features, input_.end(), 0.0f);
}

void Context::Forward(std::int64_t batch, std::span<const float> weights) {
  Begin(batch, weights);
  for (Call& call : calls_) {
    RunForward(call, weights);
  }
}

void Context::RunForward(Call& call, std::span<const float> weights) {
  Node& node = nodes_[call.node];
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

std::span<const float> Context::logits() const { return logits_; }

StepResult Context::Measure(std::int64_t batch, std::span<float> errors) const {
  const std::span<const std::int32_t> labels(labels_.data(), static_cast<std::size_t>(batch));
  const kernels::Loss loss =
      kernels::SoftmaxCrossEntropy<float>(classes_, logits(), labels, errors);
  return {.loss_sum = loss.sum, .correct = loss.correct};
}

FullyConnectedOperands Context::OperandsOf(int parameter) const {
  const auto call = std::find_if(calls_.begin(), calls_.end(), [&](const Call& c) {
    return nodes_[c.node].is_fully_connected && nodes_[c.node].parameter == parameter;
  });
  ADAMANT_CHECK(call != calls_.end(), "the weight of a fully connected layer");
  ADAMANT_CHECK(last_batch_ > 0, "after a step of training");
  const auto floats = [&](std::int64_t features) {
    return static_cast<std::size_t>(last_batch_ * features);
  };
  return {.activations = {call->inputs[0], floats(call->in_features)},
          .errors = {call->operands.output_error, floats(call->out_features)}};
}

}  // namespace adamant::graph
