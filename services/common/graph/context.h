#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/graph/executor.h"
#include "services/common/graph/profile.h"
#include "services/common/kernels/gradient_sink.h"
#include "services/common/model/model.h"

namespace adamant::graph {

enum class BackendKind { kReference, kOneDnn };

struct StepResult {
  double loss_sum = 0;       ///< over the examples of the batch, in nats
  std::int64_t correct = 0;  ///< examples whose label has the largest logit
};

/// One thread's training context: activations, errors and kernels of a graph for batches of up to
/// a fixed size. All memory is taken by Create, which also runs a step on zeros, so that what the
/// libraries make on first use is there; the other calls allocate nothing.
///
/// Parameters travel as one array of floats: every tensor of Graph::parameters end to end in its
/// canonical layout, as ShardLayout::OffsetOf says.
/// Threads: one at a time. Contexts of several threads may share the array of weights and let
/// others
///   write to it meanwhile (kernels/hogwild.h). Create it on the thread that trains, so that its
///   memory is near. Starts no threads.
/// Numbers: with equal inputs and weights that nobody changes, two calls give equal bits. Denormal
///   numbers are flushed to zero.
class Context {
 public:
  /// `training` false: Evaluate only, in less memory. Errors: InvalidArgument when max_batch is not
  /// in [1, 2^20], ResourceExhausted when the memory is not there, Internal from the backend.
  static absl::StatusOr<std::unique_ptr<Context>> Create(const model::Graph& graph,
                                                         std::int64_t max_batch,
                                                         BackendKind backend,
                                                         bool training);

  ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// [max_batch, channels, height, width] and [max_batch]: filled by the caller before a step. A
  /// step with fewer examples sets the rest of the input to zero.
  std::span<float> input() { return executor_.input(); }
  std::span<std::int32_t> labels() { return labels_; }

  /// Forward and backward over the first `batch` examples. Gives the gradient of the mean loss over
  /// the batch to `sink`, which may change the weights that `weights` views. Dropout drops what
  /// `dropout_seed` says. `weights` has an element per parameter; labels are below the number of
  /// classes. Aborts otherwise.
  StepResult Train(std::int64_t batch,
                   std::span<const float> weights,
                   kernels::GradientSink& sink,
                   std::uint64_t dropout_seed);

  /// The same, with a sink that writes all of `gradients`.
  StepResult Train(std::int64_t batch,
                   std::span<const float> weights,
                   std::span<float> gradients,
                   std::uint64_t dropout_seed);

  /// Forward over the first `batch` examples, without dropout.
  StepResult Evaluate(std::int64_t batch, std::span<const float> weights);

  /// Takes steps as Train does, of the largest batch, with whatever is in input and labels:
  /// medians. Allocates.
  StepProfile Profile(const ProfileOptions& options,
                      std::span<const float> weights,
                      kernels::GradientSink& sink);

  /// Returns how the nodes are executed, in this order; without times.
  [[nodiscard]] std::vector<NodeProfile> Nodes() const { return executor_.Nodes(); }

  /// Of the last step, valid until the next call: [max_batch, classes]; rows beyond its batch mean
  /// nothing.
  [[nodiscard]] std::span<const float> logits() const { return executor_.logits(); }

  /// Of the last Train, valid until the next call. `parameter` is the index of a fully connected
  /// layer's weight.
  [[nodiscard]] FullyConnectedOperands OperandsOf(int parameter) const;

 private:
  Context(const model::Graph& graph, std::int64_t max_batch, bool training, Executor executor);
  void WarmUp();
  void Begin(std::int64_t batch, std::span<const float> weights);
  StepResult Measure(std::int64_t batch, std::span<float> errors) const;
  void TimeNodes(std::span<const float> weights,
                 kernels::GradientSink& sink,
                 std::span<double> seconds);

  // Constant after construction.
  const std::int64_t max_batch_;
  const bool training_;
  const std::int64_t input_features_;  // of an example
  const std::int64_t classes_;

  // Of the current step.
  Executor executor_;
  std::vector<std::int32_t> labels_;
  std::int64_t last_batch_ = 0;  // of the last Train
};

}  // namespace adamant::graph
