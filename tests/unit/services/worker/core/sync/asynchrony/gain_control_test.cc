#include "services/worker/core/sync/asynchrony/gain_control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "services/common/base/rng.h"
#include "tests/unit/services/worker/core/sync/asynchrony/one_tensor.h"

namespace adamant::worker {
namespace {

/// Observes a line of values that swings with this period in fetches, growing by `growth`.
double AgreementOf(int period,
                   std::size_t stretch,
                   GainControl::Crowd crowd = GainControl::Crowd::kMany) {
  GainControl control(OneTensor(64), /*has_momentum=*/true);
  control.Start(0.5);
  std::vector<float> values(64);
  for (int i = 0; i < 40; ++i) {
    const auto swing = static_cast<float>(std::sin(2 * 3.14159265 * i / period));
    for (std::size_t j = 0; j < values.size(); ++j) {
      values[j] = swing * static_cast<float>(j % 3 + 1);
    }
    control.Observe(values, {.stretch = stretch, .growth = 0.05, .crowd = crowd});
  }
  return control.gain();
}

TEST(GainControlTest, RisesWhileTheWeightsGoOn) {
  GainControl control(OneTensor(64), /*has_momentum=*/true);
  control.Start(0.1);
  std::vector<float> values(64);
  for (int i = 0; i < 100; ++i) {
    for (float& value : values) {
      value += 0.01f;
    }
    control.Observe(values, {.stretch = 4, .growth = 0.05});
  }
  EXPECT_EQ(control.gain(), 1);
  EXPECT_NEAR(control.agreement(), 1, 1e-3);
}

TEST(GainControlTest, FallsWhereTheWeightsSwingToAQuarterOfWhereItBegan) {
  EXPECT_EQ(AgreementOf(8, 4), 0.125);
  EXPECT_EQ(AgreementOf(8, 4, GainControl::Crowd::kFew), 0.125);
  EXPECT_EQ(AgreementOf(8, 4, GainControl::Crowd::kOne), 0.125);
}

TEST(GainControlTest, SlowTurnsAreNoSwings) { EXPECT_GT(AgreementOf(400, 2), 0.9); }

/// The gain after movements that have nothing to do with each other, but for the share of the last
/// one that is taken back.
double GainOfNoise(bool has_momentum,
                   double most = 1,
                   GainControl::Crowd crowd = GainControl::Crowd::kMany,
                   float taken_back = 0,
                   std::size_t parameters = 512) {
  GainControl control(OneTensor(parameters), has_momentum);
  control.Start(0.2);
  Rng rng(1);
  std::vector<float> values(parameters);
  for (int i = 0; i < 200; ++i) {
    for (float& value : values) {
      value = (1 - taken_back) * value + static_cast<float>(rng.Normal());
    }
    control.Observe(values, {.growth = 0.05, .crowd = crowd, .most = most});
  }
  return control.gain();
}

TEST(GainControlTest, NoiseIsSwingingOnlyWhereMomentumWouldSmoothIt) {
  EXPECT_EQ(GainOfNoise(/*has_momentum=*/false), 1);
  EXPECT_LT(GainOfNoise(/*has_momentum=*/true), 0.1);
  EXPECT_EQ(GainOfNoise(/*has_momentum=*/true, /*most=*/1, GainControl::Crowd::kFew), 1);
}

// Weights that stay about where they are, moved by chance alone.
TEST(GainControlTest, WhatIsTakenBackByChanceIsNoSwingBesideOneOther) {
  const auto gain_beside = [](GainControl::Crowd crowd) {
    return GainOfNoise(/*has_momentum=*/true, /*most=*/1, crowd, /*taken_back=*/0.5);
  };
  EXPECT_GT(gain_beside(GainControl::Crowd::kOne), 0.5);
  EXPECT_LT(gain_beside(GainControl::Crowd::kFew), 0.2);
}

// Of a few parameters a single movement may seem to swing.
TEST(GainControlTest, BesideOneOtherAMeanOfMovementsTells) {
  EXPECT_GT(GainOfNoise(/*has_momentum=*/true,
                        /*most=*/1,
                        GainControl::Crowd::kOne,
                        /*taken_back=*/0.5,
                        /*parameters=*/16),
            0.5);
}

TEST(GainControlTest, BesideOneOtherItExceedsOneOnlyWhereMovementsGoOn) {
  EXPECT_LT(
      GainOfNoise(/*has_momentum=*/true, /*most=*/2, GainControl::Crowd::kOne, /*taken_back=*/0.1),
      1.1);
}

TEST(GainControlTest, ExceedsOneOnlyWhereNothingTurns) {
  EXPECT_LT(GainOfNoise(/*has_momentum=*/false, /*most=*/2), 1.1);
  GainControl control(OneTensor(64), /*has_momentum=*/true);
  control.Start(0.5);
  std::vector<float> values(64);
  const auto go_on = [&](double most) {
    for (int i = 0; i < 100; ++i) {
      for (float& value : values) {
        value += 0.01f;
      }
      control.Observe(values, {.growth = 0.05, .most = most});
    }
  };
  go_on(2);
  EXPECT_EQ(control.gain(), 2);
  go_on(1.5);
  EXPECT_EQ(control.gain(), 1.5);
}

TEST(GainControlTest, RisesTheSlowerTheLessStretchesAgree) {
  EXPECT_GT(AgreementOf(400, 2), AgreementOf(14, 2));
  EXPECT_LT(AgreementOf(14, 2), 0.5);
}

}  // namespace
}  // namespace adamant::worker
