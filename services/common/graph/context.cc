#include "services/common/graph/context.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/status_macros.h"
#include "services/common/graph/stopwatch.h"
#include "services/common/kernels/softmax_cross_entropy.h"
#include "services/common/kernels/thread_mode.h"

namespace adamant::graph {
namespace {

constexpr std::int64_t kLargestBatch = std::int64_t{1} << 20;
constexpr std::int64_t kMostFloats = std::int64_t{1} << 40;

std::int64_t Total(const model::Graph& graph, std::int64_t batch) {
  std::int64_t total = *ElementCount(graph.input);
  for (const model::Graph::Node& node : graph.nodes) {
    total += *ElementCount(node.output);  // at most 2^13 nodes of 2^48
  }
  return total > kMostFloats / batch ? kMostFloats : total * batch;
}

absl::StatusOr<std::unique_ptr<kernels::Backend>> MakeBackend(BackendKind backend) {
  if (backend == BackendKind::kOneDnn) {
    return kernels::MakeOneDnnBackend();
  }
  return kernels::MakeReferenceBackend();
}

absl::StatusOr<Executor> MakeExecutor(const model::Graph& graph,
                                      std::int64_t max_batch,
                                      BackendKind backend,
                                      bool training) {
  if (Total(graph, max_batch) >= kMostFloats) {
    return absl::ResourceExhaustedError("the activations of a batch of " +
                                        std::to_string(max_batch) + " examples take over 4 TB");
  }
  ADAMANT_ASSIGN_OR_RETURN(auto made, MakeBackend(backend));
  return Executor::Create(graph, max_batch, std::move(made), training);
}

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

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Context::Context(const model::Graph& graph,
                 std::int64_t max_batch,
                 bool training,
                 Executor executor)
    : max_batch_(max_batch),
      training_(training),
      input_features_(*ElementCount(graph.input)),
      classes_(graph.classes),
      executor_(std::move(executor)),
      labels_(static_cast<std::size_t>(max_batch)) {}

absl::StatusOr<std::unique_ptr<Context>> Context::Create(const model::Graph& graph,
                                                         std::int64_t max_batch,
                                                         BackendKind backend,
                                                         bool training) {
  if (max_batch < 1 || max_batch > kLargestBatch) {
    return absl::InvalidArgumentError("a batch must have 1 to " + std::to_string(kLargestBatch) +
                                      " examples, not " + std::to_string(max_batch));
  }
  try {
    ADAMANT_ASSIGN_OR_RETURN(Executor executor, MakeExecutor(graph, max_batch, backend, training));
    std::unique_ptr<Context> context(new Context(graph, max_batch, training, std::move(executor)));
    context->WarmUp();
    return context;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for a batch of " + std::to_string(max_batch) +
                                        " examples; try a smaller one");
  }
}

void Context::WarmUp() {
  const std::vector<float> weights(executor_.parameter_floats());
  if (training_) {
    std::vector<float> gradients(executor_.parameter_floats());
    Train(max_batch_, weights, gradients, 0);
    last_batch_ = 0;
  } else {
    Evaluate(max_batch_, weights);
  }
}

StepResult Context::Train(std::int64_t batch,
                          std::span<const float> weights,
                          std::span<float> gradients,
                          std::uint64_t dropout_seed) {
  ADAMANT_CHECK(gradients.size() == executor_.parameter_floats(), "a gradient per parameter");
  GradientArray array(gradients);
  return Train(batch, weights, array, dropout_seed);
}

StepResult Context::Train(std::int64_t batch,
                          std::span<const float> weights,
                          kernels::GradientSink& sink,
                          std::uint64_t dropout_seed) {
  ADAMANT_CHECK(training_, "the context was created for training");
  const kernels::ThreadMode mode;
  executor_.SetDropout(dropout_seed);
  Begin(batch, weights);
  executor_.Forward(weights);
  last_batch_ = batch;
  const StepResult result = Measure(batch, executor_.loss_error());
  executor_.Backward(sink);
  return result;
}

StepResult Context::Evaluate(std::int64_t batch, std::span<const float> weights) {
  const kernels::ThreadMode mode;
  executor_.ClearDropout();
  Begin(batch, weights);
  executor_.Forward(weights);
  return Measure(batch, {});
}

void Context::Begin(std::int64_t batch, std::span<const float> weights) {
  ADAMANT_CHECK(batch >= 1 && batch <= max_batch_, "the batch fits the context");
  ADAMANT_CHECK(weights.size() == executor_.parameter_floats(), "a weight per parameter");
  const std::span<float> rest = input().subspan(static_cast<std::size_t>(batch * input_features_));
  std::fill(rest.begin(), rest.end(), 0.0f);
}

StepResult Context::Measure(std::int64_t batch, std::span<float> errors) const {
  const std::span<const std::int32_t> labels(labels_.data(), static_cast<std::size_t>(batch));
  const kernels::Loss loss =
      kernels::SoftmaxCrossEntropy<float>(classes_, logits(), labels, errors);
  return {.loss_sum = loss.sum, .correct = loss.correct};
}

StepProfile Context::Profile(const ProfileOptions& options,
                             std::span<const float> weights,
                             kernels::GradientSink& sink) {
  StepProfile profile = {.nodes = Nodes(), .seconds = 0, .memory_bytes = executor_.memory_bytes()};
  std::vector<std::vector<double>> of_nodes(profile.nodes.size());
  std::vector<double> of_steps;
  const Stopwatch all;
  for (int step = 0; step == 0 || (step < options.steps && all.Seconds() < options.seconds);
       ++step) {
    std::vector<double> seconds(profile.nodes.size());
    TimeNodes(weights, sink, seconds);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      of_nodes[i].push_back(seconds[i]);
    }
    const Stopwatch whole;
    Train(max_batch_, weights, sink, 0);
    of_steps.push_back(whole.Seconds());
    if (options.on_step) {
      options.on_step(step + 1);
    }
  }
  profile.seconds = Median(of_steps);
  for (std::size_t i = 0; i < of_nodes.size(); ++i) {
    profile.nodes[i].seconds = Median(of_nodes[i]);
  }
  return profile;
}

void Context::TimeNodes(std::span<const float> weights,
                        kernels::GradientSink& sink,
                        std::span<double> seconds) {
  ADAMANT_CHECK(training_, "the context was created for training");
  const kernels::ThreadMode mode;
  Begin(max_batch_, weights);
  executor_.TimeForward(weights, seconds);
  Measure(max_batch_, executor_.loss_error());
  executor_.TimeBackward(sink, seconds);
}

FullyConnectedOperands Context::OperandsOf(int parameter) const {
  const FullyConnectedOperands operands = executor_.OperandsOf(parameter, last_batch_);
  ADAMANT_CHECK(last_batch_ > 0, "after a step of training");
  return operands;
}

}  // namespace adamant::graph
