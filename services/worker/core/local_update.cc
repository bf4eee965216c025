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

}  // namespace

LocalUpdate::LocalUpdate(const UpdatePlan& plan, const Arrays& arrays, double start)
    : plan_(plan), arrays_(arrays), start_(start) {}

void LocalUpdate::Begin(std::uint64_t job_examples, Accumulator& accumulator) {
  job_examples_ = job_examples;
  accumulator_ = &accumulator;
  tensor_ = nullptr;
}

void LocalUpdate::Take(std::size_t begin, std::span<float> gradient) {
  if (tensor_ == nullptr || begin < tensor_->offset || begin >= tensor_->offset + tensor_->size) {
    tensor_ = &plan_.TensorOf(begin);
    rule_ = tensor_->optimiser.At(job_examples_);
  }
  if (!tensor_->trained) {
    return;
  }
  const std::size_t blocks = (gradient.size() + UpdatePlan::kBlock - 1) / UpdatePlan::kBlock;
  const auto first = static_cast<std::size_t>(start_ * static_cast<double>(blocks));
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t at = (first + i) % blocks * UpdatePlan::kBlock;
    TakeBlock(begin + at, gradient.subspan(at, std::min(UpdatePlan::kBlock, gradient.size() - at)));
  }
}

void LocalUpdate::TakeBlock(std::size_t begin, std::span<float> gradient) {
  const bool first = accumulator_->steps == 0;
  const auto weights = arrays_.weights.subspan(begin, gradient.size());
  const auto accrued = accumulator_->values.span().subspan(begin, gradient.size());
  if (tensor_->optimiser.location == OptimiserLocation::kServer) {
    Accrue(gradient, first, accrued);
    kernels::HogwildAxpy(weights, -rule_.rate, gradient);
    return;
  }
  std::span<float> now;
  if (rule_.weight_decay != 0) {
    now = arrays_.scratch.first(gradient.size());
    kernels::HogwildLoad(weights, now);
  }
  const auto state =
      arrays_.state.empty() ? arrays_.state : arrays_.state.subspan(begin, gradient.size());
  WeightChange(rule_, gradient, now, state, gradient);
  Accrue(gradient, first, accrued);
  kernels::HogwildAdd(weights, gradient);
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
