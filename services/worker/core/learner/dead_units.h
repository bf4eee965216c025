#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "services/common/kernels/gradient_sink.h"
#include "services/common/model/model.h"
#include "services/common/protocol/control.h"
#include "services/worker/core/base/update_plan.h"

namespace adamant::worker {

using protocol::DeadUnits;

// A unit, an output of a fully connected layer or a channel of a convolution, is dead when a ReLU
// that follows it lets nothing through, whatever the example: then no gradient reaches its weights,
// and it stays as it is. The gradient of its bias tells, which is exactly 0 then. Biases come by as
// gradients also where their layer's weights are pushed as rows (UpdateProtocol::kActivations).

/// A layer whose units are watched: each has a bias.
struct WatchedLayer {
  std::string name;
  std::uint64_t begin = 0;  ///< of the biases, in the flat parameters
  std::uint64_t units = 0;
};

/// The hidden layers whose biases are trained, by their place in the flat parameters.
std::vector<WatchedLayer> WatchedLayersOf(const model::Graph& graph, const UpdatePlan& plan);

/// Last counts of dead units by the training threads of a worker.
/// Threads: Set by each for itself, Read by any. Lock-free.
class DeadUnitBoard {
 public:
  DeadUnitBoard(std::vector<WatchedLayer> layers, std::size_t threads);

  [[nodiscard]] const std::vector<WatchedLayer>& layers() const { return layers_; }

  /// `layer`: index into layers().
  void Set(std::size_t thread, std::size_t layer, std::uint64_t dead);

  /// The smallest count of any thread, for who sees fewer examples sees fewer units alive. Layers
  /// that no thread has counted yet are left out.
  [[nodiscard]] std::vector<DeadUnits> Read() const;

 private:
  const std::vector<WatchedLayer> layers_;
  std::vector<std::atomic<std::uint64_t>> dead_;  // all layers of a thread, then those of the next
};

/// Watches a sample of the steps of one training thread: it stands before the sink of their
/// gradients. Units that were alive in no step of a window count as dead. Allocates at construction
/// only.
/// Threads: one.
class DeadUnitSampler final : public kernels::GradientSink {
 public:
  static constexpr std::uint64_t kSampleEvery = 16;  ///< steps
  static constexpr std::uint64_t kWindow = 32;       ///< samples

  /// `board` and `next` must outlive this.
  DeadUnitSampler(DeadUnitBoard& board, std::size_t thread, kernels::GradientSink& next);

  /// A step begins, whose gradients are to go to what this returns: `next`, unless it is watched.
  kernels::GradientSink& Begin();

  /// The step is over.
  void End();

  void Take(std::size_t begin, std::span<float> gradient) override;
  [[nodiscard]] double start() const override { return next_.start(); }

 private:
  void Note(std::size_t begin, std::span<const float> gradient);
  void CloseWindow();

  DeadUnitBoard& board_;
  const std::size_t thread_;
  kernels::GradientSink& next_;
  std::vector<std::vector<std::uint8_t>> alive_;  // by layer and unit: 1 if seen so in this window
  std::uint64_t steps_ = 0;
  std::uint64_t samples_ = 0;  // of this window
  bool samples_this_step_ = false;
};

}  // namespace adamant::worker
