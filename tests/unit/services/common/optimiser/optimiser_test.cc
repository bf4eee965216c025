#include "services/common/optimiser/optimiser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace adamant {
namespace {

TEST(ScheduleTest, ConstantIsAlwaysOne) {
  const Schedule schedule;
  EXPECT_EQ(schedule.FactorAt(0), 1.0);
  EXPECT_EQ(schedule.FactorAt(1'000'000'000), 1.0);
}

TEST(ScheduleTest, StepMultipliesAtEveryStep) {
  const Schedule schedule{.kind = Schedule::Kind::kStep, .decay = 0.5, .every = 100};
  EXPECT_EQ(schedule.FactorAt(0), 1.0);
  EXPECT_EQ(schedule.FactorAt(99), 1.0);
  EXPECT_EQ(schedule.FactorAt(100), 0.5);
  EXPECT_EQ(schedule.FactorAt(350), 0.125);
  EXPECT_EQ(schedule.FactorAt(1'000'000'000), 0.0);
}

TEST(ScheduleTest, LinearEndsAtTheFinalFactorAndStaysThere) {
  const Schedule schedule{.kind = Schedule::Kind::kLinear, .final_factor = 0.2, .over = 1000};
  EXPECT_EQ(schedule.FactorAt(0), 1.0);
  EXPECT_NEAR(schedule.FactorAt(500), 0.6, 1e-15);
  EXPECT_NEAR(schedule.FactorAt(1000), 0.2, 1e-15);
  EXPECT_NEAR(schedule.FactorAt(5000), 0.2, 1e-15);
}

TEST(ScheduleTest, CosineFollowsTheCosineOfTheLibrary) {
  const Schedule schedule{.kind = Schedule::Kind::kCosine, .final_factor = 0.1, .over = 1000};
  for (int examples = 0; examples <= 1000; ++examples) {
    const double cosine = std::cos(std::numbers::pi * examples / 1000.0);
    EXPECT_NEAR(schedule.FactorAt(examples), 0.1 + 0.9 * (1 + cosine) / 2, 1e-15) << examples;
  }
  EXPECT_NEAR(schedule.FactorAt(2000), 0.1, 1e-15);
}

TEST(ScheduleTest, WarmUpRampsFromZeroBesideTheCurve) {
  const Schedule schedule{
      .kind = Schedule::Kind::kStep, .decay = 0.5, .every = 100, .warm_up = 200};
  EXPECT_EQ(schedule.FactorAt(0), 0.0);
  EXPECT_EQ(schedule.FactorAt(50), 0.25);
  EXPECT_EQ(schedule.FactorAt(150), 0.375);
  EXPECT_EQ(schedule.FactorAt(200), 0.25);
}

TEST(ParameterOptimiserTest, TheStepHasTheRateOfNow) {
  const ParameterOptimiser optimiser{
      .kind = OptimiserKind::kMomentum,
      .rate = 0.5,
      .schedule = {.kind = Schedule::Kind::kStep, .decay = 0.5, .every = 10},
      .momentum = 0.9,
      .weight_decay = 0.01};
  const RuleStep step = optimiser.At(10);
  EXPECT_EQ(step.kind, OptimiserKind::kMomentum);
  EXPECT_EQ(step.rate, 0.25f);
  EXPECT_EQ(step.momentum, 0.9f);
  EXPECT_EQ(step.weight_decay, 0.01f);
}

TEST(ParameterOptimiserTest, ACorrectionLowersTheRateAndLengthensMemory) {
  const ParameterOptimiser optimiser = {
      .kind = OptimiserKind::kMomentum, .rate = 0.1, .momentum = 0.9};
  const RuleStep step = optimiser.At(0, {.rate = 0.5f, .memory = 2});
  EXPECT_FLOAT_EQ(step.momentum, 0.95f);
  EXPECT_FLOAT_EQ(step.rate, 0.025f);
  // What a lasting gradient moves: rate / (1 - momentum) changes with the factor on the rate alone.
  EXPECT_NEAR(step.rate / (1 - step.momentum), 0.5 * 0.1 / (1 - 0.9), 1e-5);
}

TEST(ParameterOptimiserTest, ACorrectionMayShortenMemoryDownToOneStep) {
  const ParameterOptimiser optimiser = {
      .kind = OptimiserKind::kMomentum, .rate = 0.1, .momentum = 0.9};
  const RuleStep step = optimiser.At(0, {.rate = 0.5f, .memory = 0.2f});
  EXPECT_FLOAT_EQ(step.momentum, 0.5f);
  EXPECT_FLOAT_EQ(step.rate, 0.25f);
  EXPECT_EQ(optimiser.At(0, {.memory = 0.01f}).momentum, 0);
}

TEST(ParameterOptimiserTest, WithoutACorrectionTheNumbersAreTheJobs) {
  const ParameterOptimiser optimiser = {
      .kind = OptimiserKind::kMomentum, .rate = 0.1, .momentum = 0.9};
  EXPECT_EQ(optimiser.At(7).rate, 0.1f);
  EXPECT_EQ(optimiser.At(7).momentum, 0.9f);
}

TEST(ParameterOptimiserTest, RulesWithoutMomentumTakeTheRateAlone) {
  const ParameterOptimiser optimiser = {.kind = OptimiserKind::kAdagrad, .rate = 0.1};
  EXPECT_FLOAT_EQ(optimiser.At(0, {.rate = 0.5f, .memory = 4}).rate, 0.05f);
}

TEST(CorrectionTest, OnlyNumbersInRangeAreValid) {
  EXPECT_TRUE(Correction{}.IsValid());
  EXPECT_TRUE(Correction{.memory = 0.2f}.IsValid());
  for (const Correction& wrong : {Correction{.rate = 0},
                                  Correction{.rate = 1.5f},
                                  Correction{.rate = std::nanf("")},
                                  Correction{.memory = 0},
                                  Correction{.memory = -0.5f},
                                  Correction{.memory = std::nanf("")}}) {
    EXPECT_FALSE(wrong.IsValid());
  }
}

}  // namespace
}  // namespace adamant
