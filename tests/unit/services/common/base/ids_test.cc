#include "services/common/base/ids.h"

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <unordered_set>

#include "nlohmann/json.hpp"

namespace adamant {
namespace {

template <class A, class B>
concept Comparable = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept Ordered = requires(A a, B b) {
  a < b;
};

TEST(IdTest, OneKindIsNotTakenForAnother) {
  static_assert(!std::is_convertible_v<Incarnation, DataEpoch>);
  static_assert(!std::is_constructible_v<DataEpoch, Incarnation>);
  static_assert(!std::is_assignable_v<ConfigurationVersion&, DataEpoch>);
  static_assert(!std::is_convertible_v<ShardId, BucketId>);
  static_assert(!Comparable<DataEpoch, ConfigurationVersion>);
  static_assert(!Ordered<ShardId, BucketId>);
  static_assert(Comparable<DataEpoch, DataEpoch> && Comparable<DataEpoch, int>);
}

TEST(IdTest, IsMadeFromAndReadAsAPlainInteger) {
  DataEpoch epoch = 7;
  const std::uint64_t plain = epoch;
  EXPECT_EQ(plain, 7u);
  EXPECT_EQ(++epoch, 8);
  EXPECT_EQ(epoch++, 8);
  EXPECT_EQ(--epoch, 8);
  EXPECT_EQ(epoch += 2, 10);
  EXPECT_LT(epoch, 11u);
  EXPECT_LT(9, epoch);
  EXPECT_EQ(DataEpoch(), 0);
  static_assert(sizeof(ShardId) == sizeof(std::uint32_t));
}

TEST(IdTest, ReadsAsItsNumberInTextsAndJson) {
  EXPECT_EQ(std::to_string(Incarnation(3)), "3");
  const nlohmann::json json = {{"epoch", DataEpoch(5)}};
  EXPECT_EQ(json.dump(), R"({"epoch":5})");
  EXPECT_EQ(json.at("epoch").get<DataEpoch>(), 5);
}

TEST(IdTest, HasTheLimitsAndTheHashOfItsNumber) {
  EXPECT_EQ(std::numeric_limits<ShardId>::max(), std::numeric_limits<std::uint32_t>::max());
  const std::unordered_set<BucketId> buckets = {1, 2, 2};
  EXPECT_EQ(buckets.size(), 2u);
}

}  // namespace
}  // namespace adamant
