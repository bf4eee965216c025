#include "services/worker/core/learner/local_update.h"

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

/// Calls `visit(at, size)` for the blocks of `size` parameters, from the one at `start` on and
/// around.
template <class Visit>
void ForBlocks(std::size_t size, double start, const Visit& visit) {
  const std::size_t blocks = (size + UpdatePlan::kBlock - 1) / UpdatePlan::kBlock;
  const auto first = static_cast<std::size_t>(start * static_cast<double>(blocks));
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t at = (first + i) % blocks * UpdatePlan::kBlock;
    visit(at, std::min(UpdatePlan::kBlock, size - at));
  }
}

}  // namespace

LocalUpdate::LocalUpdate(const UpdatePlan& plan, const Arrays& arrays, const Options& options)
    : plan_(plan), arrays_(arrays), options_(options) {}

void LocalUpdate::Begin(std::uint64_t progress, Accumulator& accumulator) {
  progress_ = progress;
  accumulator_ = &accumulator;
  const std::uint64_t step = accumulator.steps + 1;
  const bool last = step == accumulator.push_every;
  shares_ = step % options_.share_every == 0 || last;
  tensor_ = nullptr;
  if (step == 1) {
    keeps_before_ = options_.alone && options_.share_every == 1 && !last;
    accrual_ = keeps_before_ ? Accrual::kKeepBefore : Accrual::kSet;
  } else if (keeps_before_) {
    keeps_before_ = !last;
    accrual_ = last ? Accrual::kDifference : Accrual::kLeave;
  } else {
    accrual_ = Accrual::kAdd;
  }
}

void LocalUpdate::Enter(const TensorPlan& tensor) {
  tensor_ = &tensor;
  rule_ = tensor.optimiser.At(progress_, accumulator_->correction);
}

void LocalUpdate::Take(std::size_t begin, std::span<float> gradient) {
  if (tensor_ == nullptr || begin < tensor_->offset || begin >= tensor_->offset + tensor_->size) {
    Enter(plan_.TensorOf(begin));
  }
  if (!tensor_->trained) {
    return;
  }
  ForBlocks(gradient.size(), options_.start, [&](std::size_t at, std::size_t size) {
    TakeBlock(begin + at, gradient.subspan(at, size));
  });
}

void LocalUpdate::TakeBlock(std::size_t begin, std::span<float> gradient) {
  const std::size_t size = gradient.size();
  const bool here = tensor_->optimiser.location == OptimiserLocation::kWorker;
  const auto state = arrays_.state.empty() ? arrays_.state : arrays_.state.subspan(begin, size);
  const auto weights = arrays_.weights.subspan(begin, size);
  if (options_.share_every == 1) {
    if (here) {
      const auto accrued = accumulator_->values.span().subspan(begin, size);
      ShareChange(rule_, gradient, state, accrual_, accrued, weights);
    } else {
      Share(begin, gradient);
    }
    return;
  }
  if (here) {
    std::span<float> now;
    if (rule_.weight_decay != 0) {
      now = arrays_.scratch.first(size);
      kernels::HogwildLoad(weights, now);
    }
    WeightChange(rule_, gradient, now, state, gradient);
  }
  const auto pending = arrays_.pending.subspan(begin, size);
  Accrue(gradient, accumulator_->steps % options_.share_every == 0, pending);
  if (shares_) {
    Share(begin, pending);
  }
}

void LocalUpdate::Settle() {
  if (!keeps_before_) {
    return;
  }
  for (const TensorPlan& tensor : plan_.tensors) {
    if (tensor.trained && tensor.optimiser.location == OptimiserLocation::kWorker) {
      TakeDifference(arrays_.weights.subspan(tensor.offset, tensor.size),
                     accumulator_->values.span().subspan(tensor.offset, tensor.size));
    }
  }
  keeps_before_ = false;
}

void LocalUpdate::Flush() {
  Settle();
  if (shares_) {
    return;
  }
  for (const TensorPlan& tensor : plan_.tensors) {
    if (tensor.trained) {
      Enter(tensor);
      ForBlocks(tensor.size, options_.start, [&](std::size_t at, std::size_t size) {
        Share(tensor.offset + at, arrays_.pending.subspan(tensor.offset + at, size));
      });
    }
  }
  shares_ = true;
}

bool LocalUpdate::IsFirst() const { return accumulator_->steps < options_.share_every; }

void LocalUpdate::Share(std::size_t begin, std::span<const float> change) {
  Accrue(change, IsFirst(), accumulator_->values.span().subspan(begin, change.size()));
  const auto weights = arrays_.weights.subspan(begin, change.size());
  if (tensor_->optimiser.location == OptimiserLocation::kServer) {
    kernels::HogwildAxpy(weights, -rule_.rate, change);
  } else {
    kernels::HogwildAdd(weights, change);
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
    const RuleStep rule = tensor.optimiser.At(accumulator.progress.load(std::memory_order_relaxed),
                                              accumulator.correction);
    kernels::HogwildAxpy(value, -rule.rate, change);
  } else {
    Add(change, value);
  }
}

void ApplyFetched(const UpdatePlan& plan,
                  const ShardLayout& layout,
                  std::span<Accumulator* const> accumulators,
                  const FetchedArrays& arrays,
                  LookAhead& look_ahead) {
  const bool looks = look_ahead.factor != 0 || look_ahead.any;
  for (const Shard& shard : layout.shards()) {
    const TensorPlan& tensor = plan.tensors[shard.tensor];
    const std::uint64_t end = tensor.offset + shard.end;
    for (std::uint64_t begin = tensor.offset + shard.begin; begin < end;
         begin += UpdatePlan::kBlock) {
      const auto size = std::min(UpdatePlan::kBlock, end - begin);
      const auto value = arrays.fetched.subspan(begin, size);
      const auto weights = arrays.weights.subspan(begin, size);
      for (const Accumulator* accumulator : accumulators) {
        if (tensor.trained && accumulator->included[shard.id] == 0) {
          AddLocalChange(tensor, *accumulator, begin, arrays.scratch, value);
        }
      }
      if (looks && tensor.trained) {
        const auto before = arrays.scratch.first(size);
        kernels::HogwildLoad(weights, before);
        Extrapolate(look_ahead.factor, before, look_ahead.ahead.subspan(begin, size), value);
      }
      kernels::HogwildStore(weights, value);
    }
  }
  look_ahead.any = look_ahead.factor != 0;
}

}  // namespace adamant::worker
