#include "services/worker/core/base/accumulator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "services/common/optimiser/rules.h"

namespace adamant::worker {

Accumulator::Accumulator(const UpdatePlan& plan, std::size_t shards, std::size_t most_steps)
    : values(plan.elements),
      rows(plan.tensors.size()),
      push_every(most_steps),
      included(shards, 0) {
  results.reserve(most_steps);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].activations) {
      rows[i].activations = FloatBuffer(plan.max_rows * plan.tensors[i].inputs);
      rows[i].errors = FloatBuffer(plan.max_rows * plan.tensors[i].outputs);
    }
  }
}

std::uint64_t Accumulator::BytesOf(const UpdatePlan& plan) {
  std::uint64_t floats = plan.elements;
  for (const TensorPlan& tensor : plan.tensors) {
    floats += tensor.activations ? plan.max_rows * (tensor.inputs + tensor.outputs) : 0;
  }
  return floats * sizeof(float);
}

void Accumulator::SwapContent(Accumulator& other) {
  std::swap(values, other.values);
  std::swap(rows, other.rows);
  std::swap(filled_rows, other.filled_rows);
  std::swap(correction, other.correction);
  progress.store(other.progress.exchange(progress.load()));
}

void Accumulator::Clear() {
  live.store(false, std::memory_order_release);
  progress.store(0, std::memory_order_relaxed);
  std::fill(included.begin(), included.end(), std::uint8_t{0});
  results.clear();
  correction = {};
  stood_still = {};
  filled_rows = 0;
  steps = 0;
}

void Sum(const UpdatePlan& plan, const Accumulator& other, Accumulator& into) {
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.trained) {
      Add(other.values.span().subspan(tensor.offset, tensor.size),
          into.values.span().subspan(tensor.offset, tensor.size));
    }
  }
}

namespace {

// All parts' rows are pushed together.
bool HasFiniteProduct(const TensorPlan& tensor,
                      std::uint32_t index,
                      std::span<Accumulator* const> parts) {
  float activations = 0;
  float errors = 0;
  std::uint64_t rows = 0;
  for (const Accumulator* part : parts) {
    const Accumulator::Rows& each = part->rows[index];
    const float largest[] = {
        MaxMagnitude(each.activations.span().first(part->filled_rows * tensor.inputs)),
        MaxMagnitude(each.errors.span().first(part->filled_rows * tensor.outputs))};
    if (!std::isfinite(largest[0]) || !std::isfinite(largest[1])) {
      return false;
    }
    activations = std::max(activations, largest[0]);
    errors = std::max(errors, largest[1]);
    rows += part->filled_rows;
  }
  return IsProductFinite(activations, errors, rows);
}

}  // namespace

const PushedShard* FindNotFinite(const UpdatePlan& plan,
                                 const ShardLayout& layout,
                                 std::span<Accumulator* const> parts) {
  const auto finite = [](std::span<const float> values) {
    return std::isfinite(MaxMagnitude(values));
  };
  for (const PushedShard& pushed : plan.pushed) {
    const Shard& shard = layout.shards()[pushed.shard];
    const TensorPlan& tensor = plan.tensors[shard.tensor];
    const auto values = parts.front()->values.span();
    if (!finite(values.subspan(tensor.offset + shard.begin, shard.size()))) {
      return &pushed;
    }
    if (!tensor.activations || shard.begin != 0) {
      continue;
    }
    if (!HasFiniteProduct(tensor, shard.tensor, parts)) {
      return &pushed;
    }
  }
  return nullptr;
}

}  // namespace adamant::worker
