#pragma once

#include <cstdint>
#include <span>

#include "services/common/kernels/gradient_sink.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/optimiser/rules.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/base/update_plan.h"
#include "services/worker/core/learner/look_ahead.h"

namespace adamant::worker {

// The arithmetic of docs/design/0007-updates.md on flat parameters. `weights` are shared between
// threads without locks (kernels/hogwild.h). Nothing here allocates, locks or waits.

/// The steps of a training thread: takes the gradient while it is computed, changes the weights and
/// adds to an accumulator. With share_every > 1 the changes of so many steps go to weights and
/// accumulator together. Where nobody else changes the weights, the accumulator keeps them as they
/// were before its first step, and becomes the difference with its last: most steps then do without
/// it, and memory is what steps on small batches wait for.
class LocalUpdate final : public kernels::GradientSink {
 public:
  /// The arrays of the flat parameters that the thread updates.
  struct Arrays {
    std::span<float> weights;  ///< shared
    std::span<float> state;    ///< UpdatePlan::StateSize
    std::span<float> pending;  ///< of the steps that are not shared yet; empty if share_every is 1
    std::span<float> scratch;  ///< UpdatePlan::kBlock
  };

  struct Options {
    std::uint64_t share_every = 1;
    bool alone = false;  ///< no other thread steps on these weights
    double start = 0;    ///< in [0, 1): where in each tensor the sweep begins
  };

  /// `plan` must outlive this.
  LocalUpdate(const UpdatePlan& plan, const Arrays& arrays, const Options& options);

  /// A step begins, on the mean gradient of a batch at `progress` (Batch); the one of
  /// `accumulator` after its `steps`. The first to reach the accumulator overwrites it.
  void Begin(std::uint64_t progress, Accumulator& accumulator);

  void Take(std::size_t begin, std::span<float> gradient) override;
  [[nodiscard]] double start() const override { return options_.start; }

  /// Returns whether the last step has reached weights and accumulator, with all before it.
  [[nodiscard]] bool shared() const { return shares_ && !keeps_before_; }

  /// Adds what is pending of the last step and those before it to the weights and to their
  /// accumulator.
  void Flush();

  /// Gives the accumulator the changes that the weights have and it lacks, if any. Call before
  /// anybody else changes the weights.
  void Settle();

 private:
  void Enter(const TensorPlan& tensor);
  void TakeBlock(std::size_t begin, std::span<float> gradient);
  void Share(std::size_t begin, std::span<const float> change);
  /// Returns whether nothing of the accumulator's steps has reached it yet.
  [[nodiscard]] bool IsFirst() const;

  const UpdatePlan& plan_;
  const Arrays arrays_;
  const Options options_;

  // Of the current step.
  std::uint64_t progress_ = 0;
  Accumulator* accumulator_ = nullptr;
  bool shares_ = true;
  bool keeps_before_ = false;  // the accumulator, of parameters whose rule runs here
  Accrual accrual_ = Accrual::kSet;
  const TensorPlan* tensor_ = nullptr;  // of the last piece
  RuleStep rule_;                       // likewise
};

/// Adds to `value`, a range of the flat parameters from `begin` on that lies in one tensor, what
/// the accumulator changed of the local weights there.
void AddLocalChange(const TensorPlan& tensor,
                    const Accumulator& accumulator,
                    std::uint64_t begin,
                    std::span<float> scratch,
                    std::span<float> value);

/// The arrays of a fetch that is applied.
struct FetchedArrays {
  std::span<float> fetched;  ///< overwritten
  std::span<float> weights;  ///< shared
  std::span<float> scratch;  ///< UpdatePlan::kBlock
};

/// weights = fetched + what `accumulators` changed and the fetched values do not include
/// (Accumulator::included), in the order given, + what is looked ahead.
void ApplyFetched(const UpdatePlan& plan,
                  const ShardLayout& layout,
                  std::span<Accumulator* const> accumulators,
                  const FetchedArrays& arrays,
                  LookAhead& look_ahead);

}  // namespace adamant::worker
