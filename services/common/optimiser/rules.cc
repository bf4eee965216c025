#include "services/common/optimiser/rules.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "services/common/base/check.h"
#include "services/common/optimiser/multiversion.h"

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

/// One call's arrays of n elements. `out` may be `weights` or `gradient`.
struct Range {
  const float* gradient;
  const float* weights;  ///< null: not read
  float* state;          ///< null for rules without
  float* out;
  std::size_t n;
};

template <bool kDecays, bool kApplies, class Rule>
[[gnu::always_inline]] inline void Loop(Rule rule, float decay, const Range& range) {
  const auto [gradient, weights, state, out, n] = range;
  ADAMANT_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < n; ++i) {
    const float d = kDecays ? gradient[i] + decay * weights[i] : gradient[i];
    const float taken = rule(d, state + i);
    out[i] = kApplies ? weights[i] - taken : -taken;
  }
}

template <class Rule>
[[gnu::always_inline]] inline void Run(Rule rule, float decay, bool applies, const Range& range) {
  if (applies) {
    decay != 0 ? Loop<true, true>(rule, decay, range) : Loop<false, true>(rule, decay, range);
  } else {
    decay != 0 ? Loop<true, false>(rule, decay, range) : Loop<false, false>(rule, decay, range);
  }
}

ADAMANT_MULTIVERSION void RunSgd(const RuleStep& step, bool applies, const Range& range) {
  Run(Sgd{step.rate}, step.weight_decay, applies, range);
}

ADAMANT_MULTIVERSION void RunMomentum(const RuleStep& step, bool applies, const Range& range) {
  Run(Momentum{step.rate, step.momentum}, step.weight_decay, applies, range);
}

ADAMANT_MULTIVERSION void RunAdagrad(const RuleStep& step, bool applies, const Range& range) {
  Run(Adagrad{step.rate, step.epsilon}, step.weight_decay, applies, range);
}

void RunStep(const RuleStep& step, bool applies, const Range& range) {
  switch (step.kind) {
    case OptimiserKind::kSgd:
      return RunSgd(step, applies, range);
    case OptimiserKind::kMomentum:
      return RunMomentum(step, applies, range);
    case OptimiserKind::kAdagrad:
      return RunAdagrad(step, applies, range);
  }
}

ADAMANT_MULTIVERSION void AddLoop(const float* change, float* values, std::size_t n) {
  ADAMANT_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < n; ++i) {
    values[i] += change[i];
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
  RunStep(
      step, true, {gradient.data(), weights.data(), state.data(), weights.data(), weights.size()});
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
  RunStep(
      step, false, {gradient.data(), weights.data(), state.data(), change.data(), change.size()});
}

void Add(std::span<const float> change, std::span<float> values) {
  ADAMANT_CHECK(change.size() == values.size(), "one change per value");
  AddLoop(change.data(), values.data(), values.size());
}

float MaxMagnitude(std::span<const float> values) {
  return std::bit_cast<float>(MaxMagnitudeBits(values.data(), values.size()));
}

}  // namespace adamant
