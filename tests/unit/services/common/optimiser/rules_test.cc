#include "services/common/optimiser/rules.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "services/common/base/rng.h"

namespace adamant {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Random(Rng& rng, std::size_t n) {
  std::vector<float> values(n);
  for (float& value : values) {
    value = static_cast<float>(rng.Normal());
  }
  return values;
}

std::vector<std::uint32_t> Bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

/// Every rule, with and without weight decay.
std::vector<RuleStep> Steps() {
  std::vector<RuleStep> steps;
  for (const float decay : {0.0f, 0.03f}) {
    steps.push_back({.kind = OptimiserKind::kSgd, .rate = 0.1f, .weight_decay = decay});
    steps.push_back(
        {.kind = OptimiserKind::kMomentum, .rate = 0.1f, .momentum = 0.9f, .weight_decay = decay});
    steps.push_back(
        {.kind = OptimiserKind::kAdagrad, .rate = 0.1f, .epsilon = 1e-6f, .weight_decay = decay});
  }
  return steps;
}

/// One element in plain arithmetic of type T.
template <class T>
void Expected(const RuleStep& step, T gradient, T& state, T& weight) {
  const T d = step.weight_decay != 0 ? gradient + T(step.weight_decay) * weight : gradient;
  switch (step.kind) {
    case OptimiserKind::kSgd:
      weight -= T(step.rate) * d;
      break;
    case OptimiserKind::kMomentum:
      state = T(step.momentum) * state + d;
      weight -= T(step.rate) * state;
      break;
    case OptimiserKind::kAdagrad:
      state += d * d;
      weight -= T(step.rate) * d / (std::sqrt(state) + T(step.epsilon));
      break;
  }
}

TEST(RulesTest, FollowTheFormulasInDoublePrecisionWithinRounding) {
  Rng rng(1);
  for (const RuleStep& step : Steps()) {
    std::vector<float> weights = Random(rng, 100);
    std::vector<float> state(100 * StatePerWeight(step.kind));
    std::vector<double> expected_weights(weights.begin(), weights.end());
    std::vector<double> expected_state(100);
    for (int round = 0; round < 20; ++round) {
      const std::vector<float> gradient = Random(rng, 100);
      ApplyGradient(step, gradient, state, weights);
      for (int i = 0; i < 100; ++i) {
        Expected<double>(step, gradient[i], expected_state[i], expected_weights[i]);
      }
    }
    for (int i = 0; i < 100; ++i) {
      EXPECT_NEAR(weights[i], expected_weights[i], 1e-5) << i;
    }
  }
}

TEST(RulesTest, GiveTheBitsOfThePlainLoopAtEveryLength) {
  Rng rng(2);
  for (const RuleStep& step : Steps()) {
    for (std::size_t n = 0; n < 70; ++n) {
      std::vector<float> weights = Random(rng, n);
      std::vector<float> state(n * StatePerWeight(step.kind), 0.25f);
      std::vector<float> expected_weights = weights;
      std::vector<float> expected_state(n, 0.25f);
      const std::vector<float> gradient = Random(rng, n);
      ApplyGradient(step, gradient, state, weights);
      for (std::size_t i = 0; i < n; ++i) {
        Expected<float>(step, gradient[i], expected_state[i], expected_weights[i]);
      }
      EXPECT_EQ(Bits(weights), Bits(expected_weights)) << n;
      if (!state.empty()) {
        EXPECT_EQ(Bits(state), Bits(expected_state)) << n;
      }
    }
  }
}

TEST(RulesTest, BlocksGiveTheBitsOfTheWhole) {
  constexpr std::size_t kSize = 1000;
  Rng rng(3);
  for (const RuleStep& step : Steps()) {
    std::vector<float> whole = Random(rng, kSize);
    std::vector<float> blocks = whole;
    std::vector<float> whole_state(kSize * StatePerWeight(step.kind));
    std::vector<float> block_state = whole_state;
    const std::vector<float> gradient = Random(rng, kSize);
    ApplyGradient(step, gradient, whole_state, whole);
    for (std::size_t begin = 0; begin < kSize;) {
      const std::size_t n = std::min<std::size_t>(kSize - begin, 1 + rng.Below(97));
      const std::span<float> state(block_state);
      ApplyGradient(step,
                    std::span(gradient).subspan(begin, n),
                    state.empty() ? state : state.subspan(begin, n),
                    std::span(blocks).subspan(begin, n));
      begin += n;
    }
    EXPECT_EQ(Bits(blocks), Bits(whole));
  }
}

TEST(RulesTest, AddingTheWeightChangeGivesTheBitsOfApplying) {
  Rng rng(4);
  for (const RuleStep& step : Steps()) {
    std::vector<float> applied = Random(rng, 333);
    std::vector<float> added = applied;
    std::vector<float> applied_state(333 * StatePerWeight(step.kind));
    std::vector<float> change_state = applied_state;
    for (int round = 0; round < 5; ++round) {
      const std::vector<float> gradient = Random(rng, 333);
      std::vector<float> change = gradient;
      ApplyGradient(step, gradient, applied_state, applied);
      WeightChange(step, change, added, change_state, change);
      Add(change, added);
      EXPECT_EQ(Bits(added), Bits(applied));
    }
  }
}

TEST(RulesTest, SharingTheChangeGivesTheBitsOfAddingIt) {
  Rng rng(5);
  for (const RuleStep& step : Steps()) {
    std::vector<float> added = Random(rng, 333);
    std::vector<float> shared = added;
    std::vector<float> added_state(333 * StatePerWeight(step.kind));
    std::vector<float> shared_state = added_state;
    std::vector<float> added_up = Random(rng, 333);
    std::vector<float> accrued = added_up;
    for (const bool first : {true, false, false, true}) {
      const std::vector<float> gradient = Random(rng, 333);
      std::vector<float> change(333);
      WeightChange(step, gradient, added, added_state, change);
      Add(change, added);
      if (first) {
        added_up = change;
      } else {
        Add(change, added_up);
      }
      ShareChange(
          step, gradient, shared_state, first ? Accrual::kSet : Accrual::kAdd, accrued, shared);
      EXPECT_EQ(Bits(shared), Bits(added));
      EXPECT_EQ(Bits(accrued), Bits(added_up));
    }
  }
}

TEST(RulesTest, WhatSharedWeightsWereBeforeBecomesTheirDifference) {
  Rng rng(6);
  for (const RuleStep& step : Steps()) {
    std::vector<float> added = Random(rng, 333);
    std::vector<float> shared = added;
    const std::vector<float> before = added;
    std::vector<float> added_state(333 * StatePerWeight(step.kind));
    std::vector<float> shared_state = added_state;
    std::vector<float> unused(333);
    std::vector<float> accrued(333, 7.0f);
    for (const Accrual accrual : {Accrual::kKeepBefore, Accrual::kLeave, Accrual::kDifference}) {
      const std::vector<float> gradient = Random(rng, 333);
      ShareChange(step, gradient, added_state, Accrual::kSet, unused, added);
      ShareChange(step, gradient, shared_state, accrual, accrued, shared);
      EXPECT_EQ(Bits(shared), Bits(added));
      if (accrual != Accrual::kDifference) {
        EXPECT_EQ(Bits(accrued), Bits(before));
      }
    }
    std::vector<float> difference = before;
    TakeDifference(shared, difference);
    EXPECT_EQ(Bits(accrued), Bits(difference));
    for (std::size_t i = 0; i < difference.size(); ++i) {
      EXPECT_EQ(difference[i], shared[i] - before[i]);
    }
  }
}

TEST(RulesTest, WithoutDecayTheWeightChangeNeedsNoWeights) {
  const RuleStep step{.kind = OptimiserKind::kSgd, .rate = 0.5f};
  std::vector<float> change(3);
  WeightChange(step, std::vector<float>{1, -2, 4}, {}, {}, change);
  EXPECT_EQ(change, (std::vector<float>{-0.5f, 1, -2}));
}

TEST(RulesTest, MaxMagnitudeFindsTheLargestOfEitherSign) {
  EXPECT_EQ(MaxMagnitude({}), 0.0f);
  EXPECT_EQ(MaxMagnitude(std::vector<float>{1, -3, 2}), 3.0f);
  EXPECT_EQ(MaxMagnitude(std::vector<float>{-0.0f, 1e-42f}), 1e-42f);
}

TEST(RulesTest, MaxMagnitudeIsNotFiniteIfOneValueIsNot) {
  Rng rng(5);
  for (std::size_t n = 1; n < 70; ++n) {
    for (const float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
      std::vector<float> values = Random(rng, n);
      EXPECT_TRUE(std::isfinite(MaxMagnitude(values)));
      values[rng.Below(n)] = bad;
      EXPECT_FALSE(std::isfinite(MaxMagnitude(values))) << n;
    }
  }
}

TEST(ExtrapolateTest, PutsValuesAheadByWhatTheyMoved) {
  std::vector<float> before = {1, 3};  // of which 0.5 and 1 was ahead
  std::vector<float> ahead = {0.5f, 1};
  std::vector<float> values = {2, 1};  // moved by 1.5 and -1
  Extrapolate(2, before, ahead, values);
  EXPECT_EQ(ahead, (std::vector<float>{3, -2}));
  EXPECT_EQ(values, (std::vector<float>{5, -1}));
}

TEST(ScaleTest, MultipliesEveryValue) {
  std::vector<float> values = {1, -2, 0};
  Scale(0.5f, values);
  EXPECT_EQ(values, (std::vector<float>{0.5f, -1, 0}));
}

}  // namespace
}  // namespace adamant
