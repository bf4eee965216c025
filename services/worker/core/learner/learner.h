#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/base/float_buffer.h"
#include "services/worker/core/base/queues.h"
#include "services/worker/core/base/update_plan.h"
#include "services/worker/core/base/worker_options.h"
#include "services/worker/core/learner/commands.h"
#include "services/worker/core/learner/dead_units.h"
#include "services/worker/core/learner/evaluation_weights.h"
#include "services/worker/core/learner/fetch_points.h"
#include "services/worker/core/learner/fetch_slot.h"
#include "services/worker/core/learner/guidance.h"
#include "services/worker/core/learner/look_ahead.h"
#include "services/worker/core/learner/thread_channel.h"
#include "services/worker/core/learner/weight_age.h"

namespace adamant::worker {

/// A worker's copy of the model, which its training threads step and evaluate: weights come in by
/// fetches, updates go out by the threads' channels (docs/design/0007-updates.md).
/// Threads: as named; "the loop" is who synchronises the copy with others, one at a time beside the
/// training threads.
class Learner {
 public:
  /// `graph`, `layout` and `plan` must outlive this. `wake_loop` is called, from training threads,
  /// when the loop has something to do; it must not block.
  Learner(const WorkerOptions& options,
          const model::Graph& graph,
          const ShardLayout& layout,
          const UpdatePlan& plan,
          std::function<void()> wake_loop);

  // --- Constant

  [[nodiscard]] const WorkerOptions& options() const { return options_; }
  [[nodiscard]] const model::Graph& graph() const { return graph_; }
  [[nodiscard]] const ShardLayout& layout() const { return layout_; }
  [[nodiscard]] const UpdatePlan& plan() const { return plan_; }
  [[nodiscard]] std::size_t threads() const { return channels_.size(); }

  // --- Both sides

  /// Rung when a training thread that waits may have something to do.
  Notifier& notifier() { return notifier_; }
  void WakeLoop() const { wake_loop_(); }

  /// Updates out.
  ThreadChannel& channel(std::size_t thread) { return *channels_[thread]; }
  [[nodiscard]] const ThreadChannel& channel(std::size_t thread) const {
    return *channels_[thread];
  }

  /// Weights in: values of now, and those of a snapshot that is evaluated.
  FetchSlot& fetch() { return fetch_; }
  EvaluationWeights& evaluation() { return evaluation_; }

  Commands& commands() { return commands_; }
  WeightAge& weight_age() { return weight_age_; }

  /// Batches of a thread between two pushes, from now on.
  [[nodiscard]] std::uint64_t PushEvery() const;

  /// Of all threads.
  [[nodiscard]] std::uint64_t steps() const { return fetch_points_.steps(); }
  DeadUnitBoard& dead_units() { return dead_units_; }
  [[nodiscard]] const DeadUnitBoard& dead_units() const { return dead_units_; }

  // --- Training threads

  /// Flat; shared without locks.
  [[nodiscard]] std::span<float> weights() { return weights_.span(); }
  [[nodiscard]] Guidance guidance() const { return guidance_.Get(); }

  /// Takes one of the thread's free accumulators for its next steps; null when there is none.
  Accumulator* TakeAccumulator(std::size_t thread);

  /// A step was taken. Returns the fetch point that is met with it; 0: none.
  std::uint64_t CountStep();
  FetchPoints& fetch_points() { return fetch_points_; }

  /// Between BeginApply and EndApply of fetch(): the fetched values, and what they lack of this
  /// worker's own steps, become the weights. `scratch`: UpdatePlan::kBlock; `live`: overwritten,
  /// with room for all accumulators.
  void ApplyFetch(std::span<float> scratch, std::vector<Accumulator*>& live);

  // --- The loop

  void SetGuidance(const Guidance& guidance) { guidance_.Set(guidance); }

  /// While all threads wait after a reset: the values in fetch(), and what they lack of
  /// `accumulators`, become the weights; nothing of before is looked ahead.
  void ReplaceWeights(std::span<Accumulator* const> accumulators, std::span<float> scratch);

  /// Lets the threads go on after a reset, without the fetch points of before; the caller rings.
  void EndReset();

 private:
  [[nodiscard]] std::uint64_t FetchEvery() const;
  void TakeFetched(std::span<Accumulator* const> accumulators, std::span<float> scratch);

  const WorkerOptions options_;
  const model::Graph& graph_;
  const ShardLayout& layout_;
  const UpdatePlan& plan_;
  const std::function<void()> wake_loop_;

  FloatBuffer weights_;
  FetchSlot fetch_;
  FloatBuffer ahead_;     // of look_ahead_; empty where nothing is corrected
  LookAhead look_ahead_;  // of whoever applies a fetch
  EvaluationWeights evaluation_;
  DeadUnitBoard dead_units_;  // as the threads sample them
  std::vector<std::unique_ptr<ThreadChannel>> channels_;

  Notifier notifier_;
  Commands commands_;
  SharedGuidance guidance_;
  FetchPoints fetch_points_;
  WeightAge weight_age_;
  std::atomic<std::uint64_t> ordinals_{0};  // accumulators taken
};

}  // namespace adamant::worker
