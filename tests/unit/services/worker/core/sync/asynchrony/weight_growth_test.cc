#include "services/worker/core/sync/asynchrony/weight_growth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace adamant::worker {
namespace {

UpdatePlan TwoTensorsAndABias() {
  UpdatePlan plan;
  for (const std::uint64_t size : {1000, 8, 1000}) {
    TensorPlan& tensor = plan.tensors.emplace_back();
    tensor.offset = plan.elements;
    tensor.size = size;
    plan.elements += size;
  }
  return plan;
}

/// Drawn with a deviation of 0.1, but for the biases.
std::vector<Parameter> Parameters() {
  std::vector<Parameter> parameters(3);
  for (Parameter& parameter : parameters) {
    parameter.initialisation = Initialisation::kHe;
    parameter.fan_in = 200;
  }
  parameters[1].initialisation = Initialisation::kZero;
  return parameters;
}

class WeightGrowthTest : public testing::Test {
 protected:
  void Fetch(float first, float bias, float second) {
    std::vector<float> values(1000, first);
    values.resize(1008, bias);
    values.resize(2008, second);
    growth_.Observe(values);
  }

  WeightGrowth growth_{TwoTensorsAndABias(), Parameters()};
};

TEST_F(WeightGrowthTest, NamesTheTensorThatHasGrownMost) {
  EXPECT_EQ(growth_.ratio(), 0);
  Fetch(0.2F, 5, -0.4F);
  EXPECT_NEAR(growth_.ratio(), 4, 1e-3);
  EXPECT_EQ(growth_.tensor(), 2u);
}

TEST_F(WeightGrowthTest, BiasesBeginAtZeroAndDoNotCount) {
  Fetch(0.1F, 1e6F, 0.1F);
  EXPECT_NEAR(growth_.ratio(), 1, 1e-3);
}

TEST_F(WeightGrowthTest, AnUntrainedTensorDoesNotCount) {
  UpdatePlan plan = TwoTensorsAndABias();
  plan.tensors[2].trained = false;
  growth_ = WeightGrowth(plan, Parameters());
  Fetch(0.2F, 0, 9);
  EXPECT_NEAR(growth_.ratio(), 2, 1e-3);
  EXPECT_EQ(growth_.tensor(), 0u);
}

TEST_F(WeightGrowthTest, WhatIsNotFiniteIsNotHidden) {
  Fetch(std::numeric_limits<float>::quiet_NaN(), 0, 0.1F);
  EXPECT_FALSE(growth_.ratio() <= 1e30);
}

}  // namespace
}  // namespace adamant::worker
