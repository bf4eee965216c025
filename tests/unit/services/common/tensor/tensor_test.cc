#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "services/common/tensor/shape.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant {
namespace {

constexpr std::int64_t kShard = ShardLayout::kShardElements;

TEST(ShapeTest, ElementCountIsTheProduct) {
  EXPECT_EQ(ElementCount({}), 1);
  EXPECT_EQ(ElementCount({10, 5, 5}), 250);
  EXPECT_EQ(ElementCount({7, 0}), 0);
}

TEST(ShapeTest, ElementCountRefusesNegativeExtentsAndOverflow) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(ElementCount({3, -1}), std::nullopt);
  EXPECT_EQ(ElementCount({kMax, kMax}), std::nullopt);
  EXPECT_EQ(ElementCount({std::int64_t{1} << 24, std::int64_t{1} << 24}), std::int64_t{1} << 48);
  EXPECT_EQ(ElementCount({std::int64_t{1} << 24, std::int64_t{1} << 24, 2}), std::nullopt);
}

TEST(ShapeTest, ShapesArePrintedWithTimesSigns) {
  EXPECT_EQ(ToString({10, 5, 5}), "10x5x5");
  EXPECT_EQ(ToString({}), "scalar");
}

ShardLayout TwoTensors(std::uint32_t buckets) {
  return ShardLayout({{.name = "a", .layer = "a", .shape = {2 * kShard + 1}},
                      {.name = "b", .layer = "b", .shape = {10}}},
                     buckets);
}

TEST(ShardLayoutTest, ShardsCoverEveryTensorWithoutGapsOrOverlap) {
  const ShardLayout layout = TwoTensors(8);
  ASSERT_EQ(layout.shards().size(), 4u);
  EXPECT_EQ(layout.elements(), static_cast<std::uint64_t>(2 * kShard + 11));
  EXPECT_EQ(layout.OffsetOf(1), static_cast<std::uint64_t>(2 * kShard + 1));
  for (std::uint32_t tensor = 0; tensor < 2; ++tensor) {
    std::uint64_t next = 0;
    for (const Shard& shard : layout.ShardsOf(tensor)) {
      EXPECT_EQ(shard.tensor, tensor);
      EXPECT_EQ(shard.begin, next);
      EXPECT_LE(shard.size() * sizeof(float), ShardLayout::kShardBytes);
      EXPECT_LT(shard.bucket, 8u);
      next = shard.end;
    }
    EXPECT_EQ(static_cast<std::int64_t>(next), *ElementCount(layout.parameters()[tensor].shape));
  }
}

TEST(ShardLayoutTest, ShardsSpreadOverTheBuckets) {
  const ShardLayout layout({{.name = "a", .layer = "a", .shape = {400, kShard}}}, 4);
  std::vector<int> shards(4, 0);
  for (const Shard& shard : layout.shards()) {
    ++shards[shard.bucket];
  }
  for (const int count : shards) {
    EXPECT_GT(count, 60);
  }
}

TEST(InitialiseShardTest, ValuesDependOnSeedTensorAndShardAlone) {
  const Parameter parameter = {.name = "w",
                               .layer = "l",
                               .shape = {1000},
                               .initialisation = Initialisation::kXavier,
                               .fan_in = 4};
  Shard shard = {.id = 3, .tensor = 1, .begin = 0, .end = 1000, .bucket = 0};
  std::vector<float> a(1000), b(1000);
  InitialiseShard(7, parameter, shard, a);
  shard.id = 9;
  shard.bucket = 2;
  InitialiseShard(7, parameter, shard, b);
  EXPECT_EQ(a, b);
  InitialiseShard(8, parameter, shard, b);
  EXPECT_NE(a, b);
  shard.tensor = 2;
  InitialiseShard(7, parameter, shard, b);
  EXPECT_NE(a, b);
}

TEST(InitialiseShardTest, DeviationFollowsTheFanIn) {
  const Shard shard = {.id = 0, .tensor = 0, .begin = 0, .end = 20000, .bucket = 0};
  std::vector<float> values(20000);
  const auto deviation = [&](Initialisation initialisation) {
    InitialiseShard(1,
                    {.name = "w",
                     .layer = "l",
                     .shape = {20000},
                     .initialisation = initialisation,
                     .fan_in = 50},
                    shard,
                    values);
    double squares = 0;
    for (const float value : values) {
      squares += double{value} * value;
    }
    return std::sqrt(squares / 20000);
  };
  EXPECT_NEAR(deviation(Initialisation::kHe), std::sqrt(2.0 / 50), 0.005);
  EXPECT_NEAR(deviation(Initialisation::kXavier), std::sqrt(1.0 / 50), 0.005);
  EXPECT_EQ(deviation(Initialisation::kZero), 0);
}

}  // namespace
}  // namespace adamant
