#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/graph/executed_node.h"
#include "services/common/graph/float_block.h"
#include "services/common/graph/kernel_call.h"
#include "services/common/graph/profile.h"
#include "services/common/kernels/backend.h"
#include "services/common/kernels/gradient_sink.h"
#include "services/common/model/model.h"

namespace adamant::graph {

/// Factors of the gradient of a fully connected layer's weight: gradient = errors^T * activations.
/// For servers that multiply themselves.
struct FullyConnectedOperands {
  std::span<const float> activations;  ///< [batch, inputs]
  std::span<const float> errors;       ///< [batch, outputs], of the mean loss over the batch
};

/// The kernels of a graph, bound to memory, and what calls them: forward from input to logits,
/// backward from the error of the logits to the gradients of the parameters. Always on as many
/// examples as it was made for; knows nothing of labels.
/// Threads: one at a time; starts none. Only Create and Nodes allocate.
class Executor {
 public:
  /// The activations of a batch fit into memory in principle: their number is far from overflow.
  /// Errors: the backend's. Throws std::bad_alloc.
  static absl::StatusOr<Executor> Create(const model::Graph& graph,
                                         std::int64_t batch,
                                         std::unique_ptr<kernels::Backend> backend,
                                         bool training);

  /// [batch, channels, height, width]: to be filled before Forward.
  [[nodiscard]] std::span<float> input() const { return input_; }

  /// [batch, classes]: of the last Forward.
  [[nodiscard]] std::span<const float> logits() const { return logits_; }

  /// [batch, classes]: what Backward begins with; empty without training.
  [[nodiscard]] std::span<float> loss_error() const { return loss_error_; }

  [[nodiscard]] std::size_t parameter_floats() const { return parameter_floats_; }
  [[nodiscard]] std::int64_t memory_bytes() const { return block_.bytes(); }

  /// From now on layers of dropout drop what `seed` says, or nothing.
  void SetDropout(std::uint64_t seed);
  void ClearDropout();

  /// `weights`: parameter_floats() of them, which others may write to.
  void Forward(std::span<const float> weights);

  /// Follows a Forward; not without training. Gives `sink` the gradients.
  void Backward(kernels::GradientSink& sink);

  /// The same, and add the seconds that each node takes to its element of `seconds`.
  void TimeForward(std::span<const float> weights, std::span<double> seconds);
  void TimeBackward(kernels::GradientSink& sink, std::span<double> seconds);

  /// In the order of execution; without times.
  [[nodiscard]] std::vector<NodeProfile> Nodes() const;

  /// Of the first `batch` examples. `parameter` is the index of a fully connected layer's weight;
  /// aborts otherwise.
  [[nodiscard]] FullyConnectedOperands OperandsOf(int parameter, std::int64_t batch) const;

 private:
  explicit Executor(std::unique_ptr<kernels::Backend> backend);
  absl::Status Build(const model::Graph& graph, std::int64_t batch, bool training);
  void RunForward(KernelCall& call, std::span<const float> weights);
  void RunBackward(KernelCall& call, kernels::GradientSink& sink);

  // Constant after Create.
  std::unique_ptr<kernels::Backend> backend_;  // outlives the kernels in nodes_
  FloatBlock block_;                           // activations, errors, what parameters need
  std::size_t parameter_floats_ = 0;
  std::span<float> input_;
  std::span<const float> logits_;
  std::span<float> loss_error_;

  // Of the current step.
  std::vector<ExecutedNode> nodes_;
  std::vector<KernelCall> calls_;  // forward in this order, backward in the other
};

}  // namespace adamant::graph
