#pragma once

#include <cstdint>
#include <span>

#include "services/worker/core/accumulator.h"
#include "services/worker/core/update_plan.h"

namespace adamant::worker {

// The arithmetic of docs/design/updates.md on flat parameters. `weights` are shared between threads
// without locks (kernels/hogwild.h). Nothing here allocates, locks or waits.

/// What a training thread updates with: arrays of the flat parameters and a block of scratch.
struct StepArrays {
  std::span<float> gradient;  ///< of this step; overwritten
  std::span<float> state;     ///< of the rule, if it runs here; may be empty
  std::span<float> scratch;   ///< UpdatePlan::kBlock
  std::span<float> weights;   ///< shared
};

/// One step with the mean gradient of a batch dealt at `job_examples`: changes the weights and adds
/// to `accumulator`, which is overwritten if it is empty (steps == 0). `start` in [0, 1) is where
/// in the parameters the sweep begins: another place for each thread.
void TakeStep(const UpdatePlan& plan,
              std::uint64_t job_examples,
              double start,
              const StepArrays& arrays,
              Accumulator& accumulator);

/// Adds to `value`, a range of the flat parameters from `begin` on that lies in one tensor, what
/// the accumulator changed of the local weights there.
void AddLocalChange(const TensorPlan& tensor,
                    const Accumulator& accumulator,
                    std::uint64_t begin,
                    std::span<float> scratch,
                    std::span<float> value);

/// weights = fetched + what `accumulators` changed and the fetched values do not include
/// (Accumulator::included), in the order given. `fetched` is overwritten.
void ApplyFetched(const UpdatePlan& plan,
                  const ShardLayout& layout,
                  std::span<Accumulator* const> accumulators,
                  std::span<float> scratch,
                  std::span<float> fetched,
                  std::span<float> weights);

}  // namespace adamant::worker
