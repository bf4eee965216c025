#include "services/worker/core/learner/fetch_points.h"

#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

constexpr auto kEveryTwo = [] { return std::uint64_t{2}; };

TEST(FetchPointsTest, OneIsMetAfterEveryInterval) {
  FetchPoints points(3);
  EXPECT_EQ(points.OnStep(kEveryTwo), 0u);
  EXPECT_EQ(points.OnStep(kEveryTwo), 0u);
  EXPECT_EQ(points.OnStep(kEveryTwo), 1u);
  EXPECT_EQ(points.OnStep(kEveryTwo), 0u);
  EXPECT_EQ(points.OnStep(kEveryTwo), 2u);
  EXPECT_EQ(points.steps(), 5u);
}

TEST(FetchPointsTest, TheyAreDealtWithInOrder) {
  FetchPoints points(1);
  EXPECT_EQ(points.OnStep(kEveryTwo), 1u);
  EXPECT_TRUE(points.IsTurn(1));
  EXPECT_FALSE(points.IsTurn(2));
  points.Pass(1);
  EXPECT_TRUE(points.IsTurn(2));
  points.OnStep(kEveryTwo);
  EXPECT_EQ(points.OnStep(kEveryTwo), 2u);
  points.Drop();
  EXPECT_TRUE(points.IsTurn(3));
}

TEST(FetchPointsTest, ThereMayBeNone) {
  FetchPoints points(0);
  EXPECT_EQ(points.OnStep(kEveryTwo), 0u);
  EXPECT_EQ(points.steps(), 1u);
}

}  // namespace
}  // namespace adamant::worker
