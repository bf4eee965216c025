#include "services/common/kernels/softmax_cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "services/common/base/rng.h"

namespace adamant::kernels {
namespace {

TEST(SoftmaxCrossEntropyTest, EqualLogitsCostTheLogarithmOfTheClasses) {
  const std::vector<double> logits(8, 3.0);
  const std::vector<std::int32_t> labels = {0, 3};
  const Loss loss = SoftmaxCrossEntropy<double>(4, logits, labels, {});
  EXPECT_NEAR(loss.sum, 2 * std::log(4.0), 1e-12);
  EXPECT_EQ(loss.correct, 1);  // the first of equal logits counts
}

TEST(SoftmaxCrossEntropyTest, ErrorsAreTheGradientOfTheMeanLoss) {
  Rng rng(1);
  std::vector<double> logits(15);
  for (double& logit : logits) {
    logit = 3 * rng.Normal();
  }
  const std::vector<std::int32_t> labels = {4, 0};  // the third row is not in the batch
  std::vector<double> errors(15, 7);
  SoftmaxCrossEntropy<double>(5, logits, labels, errors);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    constexpr double kStep = 1e-5;
    std::vector<double> moved = logits;
    moved[i] += kStep;
    const double above = SoftmaxCrossEntropy<double>(5, moved, labels, {}).sum / 2;
    moved[i] -= 2 * kStep;
    const double below = SoftmaxCrossEntropy<double>(5, moved, labels, {}).sum / 2;
    EXPECT_NEAR(errors[i], (above - below) / (2 * kStep), 1e-8) << i;
  }
  EXPECT_EQ(errors[10], 0);
}

TEST(SoftmaxCrossEntropyTest, LargeLogitsDoNotOverflow) {
  const std::vector<float> logits = {1e30f, 0, -1e30f, 500, 400, 300};
  const std::vector<std::int32_t> labels = {0, 1};
  std::vector<float> errors(6);
  const Loss loss = SoftmaxCrossEntropy<float>(3, logits, labels, errors);
  EXPECT_NEAR(loss.sum, 100, 1e-3);
  for (const float error : errors) {
    EXPECT_TRUE(std::isfinite(error));
  }
}

TEST(SoftmaxCrossEntropyDeathTest, ALabelBeyondTheClassesAborts) {
  const std::vector<float> logits(3);
  const std::vector<std::int32_t> labels = {3};
  EXPECT_DEATH(SoftmaxCrossEntropy<float>(3, logits, labels, {}), "below the number of classes");
}

}  // namespace
}  // namespace adamant::kernels
