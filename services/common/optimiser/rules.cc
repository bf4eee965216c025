#include "services/common/optimiser/rules.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "services/common/base/check.h"
#include "services/common/base/races.h"
#include "services/common/base/system/multiversion.h"

namespace adamant {
namespace {

// What one element's rule takes from its weight, given d and the element's state.

struct Sgd {
  float rate;
  float operator()(float d, float* /*state*/) const { return rate * d; }
};

struct Momentum {
  float rate;
  float momentum;
  float operator()(float d, float* state) const {
    *state = momentum * *state + d;
    return rate * *state;
  }
};

struct Adagrad {
  float rate;
  float epsilon;
  float operator()(float d, float* state) const {
    *state += d * d;
    return rate * d / (std::sqrt(*state) + epsilon);
  }
};

/// What becomes of an element's change.
enum class Use {
  kWrite,  ///< out = change
  kApply,  ///< weights += change
  kShare,  ///< weights += change, and out as an Accrual says
};

/// One call's arrays of n elements. `out` may be `gradient`.
struct Range {
  const float* gradient;
  const float* decaying;  ///< the weights; null: they do not decay
  float* state;           ///< null for rules without
  float* out;             ///< of kWrite and kShare
  float* weights;         ///< of kApply and kShare
  std::size_t n;
};

template <Use kUse, Accrual kAccrual, bool kDecays, class Rule>
[[gnu::always_inline]] inline void Loop(Rule rule, float decay, const Range& range) {
  const auto [gradient, decaying, state, out, weights, n] = range;
  ADAMANT_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < n; ++i) {
    const float d = kDecays ? gradient[i] + decay * decaying[i] : gradient[i];
    const float change = -rule(d, state + i);
    if constexpr (kUse == Use::kWrite) {
      out[i] = change;
      continue;
    }
    const float before = weights[i];
    const float after = before + change;
    weights[i] = after;
    if constexpr (kUse == Use::kShare) {
      if constexpr (kAccrual == Accrual::kSet) {
        out[i] = change;
      } else if constexpr (kAccrual == Accrual::kAdd) {
        out[i] += change;
      } else if constexpr (kAccrual == Accrual::kKeepBefore) {
        out[i] = before;
      } else if constexpr (kAccrual == Accrual::kDifference) {
        out[i] = after - out[i];
      }
    }
  }
}

template <Use kUse, Accrual kAccrual, class Rule>
[[gnu::always_inline]] inline void Run(Rule rule, float decay, const Range& range) {
  decay != 0 ? Loop<kUse, kAccrual, true>(rule, decay, range)
             : Loop<kUse, kAccrual, false>(rule, decay, range);
}

template <class Rule>
[[gnu::always_inline]] inline void RunOwn(Use use, Rule rule, float decay, const Range& range) {
  use == Use::kApply ? Run<Use::kApply, Accrual::kLeave>(rule, decay, range)
                     : Run<Use::kWrite, Accrual::kLeave>(rule, decay, range);
}

template <class Rule>
[[gnu::always_inline]] inline void RunShared(Accrual accrual,
                                             Rule rule,
                                             float decay,
                                             const Range& range) {
  switch (accrual) {
    case Accrual::kSet:
      return Run<Use::kShare, Accrual::kSet>(rule, decay, range);
    case Accrual::kAdd:
      return Run<Use::kShare, Accrual::kAdd>(rule, decay, range);
    case Accrual::kKeepBefore:
      return Run<Use::kShare, Accrual::kKeepBefore>(rule, decay, range);
    case Accrual::kLeave:
      return Run<Use::kShare, Accrual::kLeave>(rule, decay, range);
    case Accrual::kDifference:
      return Run<Use::kShare, Accrual::kDifference>(rule, decay, range);
  }
}

Sgd SgdOf(const RuleStep& step) { return {step.rate}; }
Momentum MomentumOf(const RuleStep& step) { return {step.rate, step.momentum}; }
Adagrad AdagradOf(const RuleStep& step) { return {step.rate, step.epsilon}; }

ADAMANT_MULTIVERSION void OwnSgd(Use use, const RuleStep& step, const Range& range) {
  RunOwn(use, SgdOf(step), step.weight_decay, range);
}

ADAMANT_MULTIVERSION void OwnMomentum(Use use, const RuleStep& step, const Range& range) {
  RunOwn(use, MomentumOf(step), step.weight_decay, range);
}

ADAMANT_MULTIVERSION void OwnAdagrad(Use use, const RuleStep& step, const Range& range) {
  RunOwn(use, AdagradOf(step), step.weight_decay, range);
}

ADAMANT_MULTIVERSION ADAMANT_RACES void SharedSgd(Accrual accrual,
                                                  const RuleStep& step,
                                                  const Range& range) {
  RunShared(accrual, SgdOf(step), step.weight_decay, range);
}

ADAMANT_MULTIVERSION ADAMANT_RACES void SharedMomentum(Accrual accrual,
                                                       const RuleStep& step,
                                                       const Range& range) {
  RunShared(accrual, MomentumOf(step), step.weight_decay, range);
}

ADAMANT_MULTIVERSION ADAMANT_RACES void SharedAdagrad(Accrual accrual,
                                                      const RuleStep& step,
                                                      const Range& range) {
  RunShared(accrual, AdagradOf(step), step.weight_decay, range);
}

void RunStep(Use use, const RuleStep& step, const Range& range) {
  switch (step.kind) {
    case OptimiserKind::kSgd:
      return OwnSgd(use, step, range);
    case OptimiserKind::kMomentum:
      return OwnMomentum(use, step, range);
    case OptimiserKind::kAdagrad:
      return OwnAdagrad(use, step, range);
  }
}

void RunSharedStep(Accrual accrual, const RuleStep& step, const Range& range) {
  switch (step.kind) {
    case OptimiserKind::kSgd:
      return SharedSgd(accrual, step, range);
    case OptimiserKind::kMomentum:
      return SharedMomentum(accrual, step, range);
    case OptimiserKind::kAdagrad:
      return SharedAdagrad(accrual, step, range);
  }
}

ADAMANT_MULTIVERSION void AddLoop(const float* change, float* values, std::size_t n) {
  ADAMANT_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < n; ++i) {
    values[i] += change[i];
  }
}

ADAMANT_MULTIVERSION void DifferenceLoop(const float* now, float* values, std::size_t n) {
  ADAMANT_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = now[i] - values[i];
  }
}

ADAMANT_MULTIVERSION void ExtrapolateLoop(
    float factor, const float* before, float* ahead, float* values, std::size_t n) {
  ADAMANT_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < n; ++i) {
    ahead[i] = factor * (values[i] - (before[i] - ahead[i]));
    values[i] += ahead[i];
  }
}

ADAMANT_MULTIVERSION void ScaleLoop(float factor, float* values, std::size_t n) {
  ADAMANT_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < n; ++i) {
    values[i] *= factor;
  }
}

/// The bits of a magnitude order like the magnitudes themselves, with infinity and NaN on top.
ADAMANT_MULTIVERSION std::int32_t MaxMagnitudeBits(const float* values, std::size_t n) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(values[i]) & 0x7fffffff);
  }
  return largest;
}

}  // namespace

void ApplyGradient(const RuleStep& step,
                   std::span<const float> gradient,
                   std::span<float> state,
                   std::span<float> weights) {
  ADAMANT_CHECK(gradient.size() == weights.size(), "a gradient has one value per weight");
  ADAMANT_CHECK(state.size() == StatePerWeight(step.kind) * weights.size(), "state fits the rule");
  RunStep(Use::kApply,
          step,
          {.gradient = gradient.data(),
           .decaying = weights.data(),
           .state = state.data(),
           .out = nullptr,
           .weights = weights.data(),
           .n = weights.size()});
}

void WeightChange(const RuleStep& step,
                  std::span<const float> gradient,
                  std::span<const float> weights,
                  std::span<float> state,
                  std::span<float> change) {
  ADAMANT_CHECK(gradient.size() == change.size(), "a gradient has one value per weight");
  ADAMANT_CHECK(weights.size() == change.size() || (weights.empty() && step.weight_decay == 0),
                "weight decay needs the weights");
  ADAMANT_CHECK(state.size() == StatePerWeight(step.kind) * change.size(), "state fits the rule");
  RunStep(Use::kWrite,
          step,
          {.gradient = gradient.data(),
           .decaying = weights.data(),
           .state = state.data(),
           .out = change.data(),
           .weights = nullptr,
           .n = change.size()});
}

void ShareChange(const RuleStep& step,
                 std::span<const float> gradient,
                 std::span<float> state,
                 Accrual accrual,
                 std::span<float> accrued,
                 std::span<float> weights) {
  ADAMANT_CHECK(gradient.size() == weights.size(), "a gradient has one value per weight");
  ADAMANT_CHECK(accrued.size() == weights.size(), "a change accrues for every weight");
  ADAMANT_CHECK(state.size() == StatePerWeight(step.kind) * weights.size(), "state fits the rule");
  RunSharedStep(accrual,
                step,
                {.gradient = gradient.data(),
                 .decaying = weights.data(),
                 .state = state.data(),
                 .out = accrued.data(),
                 .weights = weights.data(),
                 .n = weights.size()});
}

void TakeDifference(std::span<const float> now, std::span<float> values) {
  ADAMANT_CHECK(now.size() == values.size(), "one value per weight");
  DifferenceLoop(now.data(), values.data(), values.size());
}

void Extrapolate(float factor,
                 std::span<const float> before,
                 std::span<float> ahead,
                 std::span<float> values) {
  ADAMANT_CHECK(before.size() == values.size() && ahead.size() == values.size(),
                "one value per weight");
  ExtrapolateLoop(factor, before.data(), ahead.data(), values.data(), values.size());
}

void Scale(float factor, std::span<float> values) {
  ScaleLoop(factor, values.data(), values.size());
}

void Add(std::span<const float> change, std::span<float> values) {
  ADAMANT_CHECK(change.size() == values.size(), "one change per value");
  AddLoop(change.data(), values.data(), values.size());
}

float MaxMagnitude(std::span<const float> values) {
  return std::bit_cast<float>(MaxMagnitudeBits(values.data(), values.size()));
}

bool IsProductFinite(float activations, float errors, std::uint64_t rows) {
  return static_cast<double>(activations) * errors * static_cast<double>(rows) <=
         std::numeric_limits<float>::max();
}

}  // namespace adamant
