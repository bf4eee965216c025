#include "services/worker/core/local_update.h"

#include <algorithm>

#include "services/common/kernels/hogwild.h"
#include "services/common/optimiser/rules.h"

namespace adamant::worker {
namespace {

void Accrue(std::span<const float> change, bool first, std::span<float> accrued) {
  if (first) {
    kernels::HogwildStore(accrued, change);
  } else {
    kernels::HogwildAdd(accrued, change);
  }
}

void StepBlock(const TensorPlan& tensor,
               const RuleStep& rule,
               const Block& block,
               const StepArrays& arrays,
               Accumulator& accumulator) {
  const bool first = accumulator.steps == 0;
  const auto gradient = arrays.gradient.subspan(block.begin, block.size);
  const auto weights = arrays.weights.subspan(block.begin, block.size);
  const auto accrued = accumulator.values.span().subspan(block.begin, block.size);
  if (tensor.optimiser.location == OptimiserLocation::kServer) {
    Accrue(gradient, first, accrued);
    kernels::HogwildAxpy(weights, -rule.rate, gradient);
    return;
  }
  std::span<float> now;
  if (rule.weight_decay != 0) {
    now = arrays.scratch.first(block.size);
    kernels::HogwildLoad(weights, now);
  }
  const auto state =
      arrays.state.empty() ? arrays.state : arrays.state.subspan(block.begin, block.size);
  WeightChange(rule, gradient, now, state, gradient);
  Accrue(gradient, first, accrued);
  kernels::HogwildAdd(weights, gradient);
}

}  // namespace

void TakeStep(const UpdatePlan& plan,
              std::uint64_t job_examples,
              double start,
              const StepArrays& arrays,
              Accumulator& accumulator) {
  const std::size_t count = plan.blocks.size();
  const auto first = static_cast<std::size_t>(start * static_cast<double>(count));
  const TensorPlan* tensor = nullptr;
  RuleStep rule;
  for (std::size_t i = 0; i < count; ++i) {
    const Block& block = plan.blocks[(first + i) % count];
    if (tensor != &plan.tensors[block.tensor]) {
      tensor = &plan.tensors[block.tensor];
      rule = tensor->optimiser.At(job_examples);
    }
    StepBlock(*tensor, rule, block, arrays, accumulator);
  }
}

void AddLocalChange(const TensorPlan& tensor,
                    const Accumulator& accumulator,
                    std::uint64_t begin,
                    std::span<float> scratch,
                    std::span<float> value) {
  const auto change = scratch.first(value.size());
  kernels::HogwildLoad(accumulator.values.span().subspan(begin, value.size()), change);
  if (tensor.optimiser.location == OptimiserLocation::kServer) {
    const double rate =
        tensor.optimiser.RateAt(accumulator.job_examples.load(std::memory_order_relaxed));
    kernels::HogwildAxpy(value, static_cast<float>(-rate), change);
  } else {
    Add(change, value);
  }
}

void ApplyFetched(const UpdatePlan& plan,
                  const ShardLayout& layout,
                  std::span<Accumulator* const> accumulators,
                  std::span<float> scratch,
                  std::span<float> fetched,
                  std::span<float> weights) {
  for (const Shard& shard : layout.shards()) {
    const TensorPlan& tensor = plan.tensors[shard.tensor];
    const std::uint64_t end = tensor.offset + shard.end;
    for (std::uint64_t begin = tensor.offset + shard.begin; begin < end;
         begin += UpdatePlan::kBlock) {
      const auto size = std::min(UpdatePlan::kBlock, end - begin);
      const auto value = fetched.subspan(begin, size);
      for (const Accumulator* accumulator : accumulators) {
        if (tensor.trained && accumulator->included[shard.id] == 0) {
          AddLocalChange(tensor, *accumulator, begin, scratch, value);
        }
      }
      kernels::HogwildStore(weights.subspan(begin, size), value);
    }
  }
}

}  // namespace adamant::worker
