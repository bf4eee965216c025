#include "services/parameter_server/core/driver.h"

#include <gtest/gtest.h>

namespace adamant::parameter_server {
namespace {

TEST(ReadyOfTest, TimesAreSaidOfAPromotionAlone) {
  const protocol::BucketsReady ready =
      ReadyOf({{.bucket = 1, .configuration_version = 2, .updates = 7},
               {.bucket = 2,
                .configuration_version = 3,
                .lost = true,
                .detail = "shard 4",
                .failover = {.detect_seconds = 1.5, .reconcile_seconds = 0.25}}});
  ASSERT_EQ(ready.buckets.size(), 2u);
  EXPECT_EQ(ready.buckets[0].bucket, 1u);
  EXPECT_EQ(ready.buckets[0].configuration_version, 2u);
  EXPECT_EQ(ready.buckets[0].updates, 7u);
  EXPECT_FALSE(ready.buckets[0].failover.has_value());
  EXPECT_TRUE(ready.buckets[1].lost);
  EXPECT_EQ(ready.buckets[1].detail, "shard 4");
  ASSERT_TRUE(ready.buckets[1].failover.has_value());
  EXPECT_EQ(ready.buckets[1].failover->detect_seconds, 1.5);
  EXPECT_EQ(ready.buckets[1].failover->replace_seconds, 0);
  EXPECT_EQ(ready.buckets[1].failover->reconcile_seconds, 0.25);
}

}  // namespace
}  // namespace adamant::parameter_server
