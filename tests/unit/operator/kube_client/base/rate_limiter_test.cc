#include "operator/kube_client/base/rate_limiter.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.h"

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;

TEST(RateLimiterTest, LetsABurstThroughAndThenSpacesRequests) {
  FakeClock clock;
  RateLimiter limiter(10, 3, clock);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(limiter.Reserve(), Clock::Duration::zero());
  }
  EXPECT_EQ(limiter.Reserve(), milliseconds(100));
  EXPECT_EQ(limiter.Reserve(), milliseconds(200));
  clock.Advance(milliseconds(200));
  EXPECT_EQ(limiter.Reserve(), milliseconds(100));
}

TEST(RateLimiterTest, SavesNoMoreThanTheBurst) {
  FakeClock clock;
  RateLimiter limiter(10, 2, clock);
  clock.Advance(std::chrono::hours(1));
  EXPECT_TRUE(limiter.TryTake());
  EXPECT_TRUE(limiter.TryTake());
  EXPECT_FALSE(limiter.TryTake());
  clock.Advance(milliseconds(100));
  EXPECT_TRUE(limiter.TryTake());
  EXPECT_FALSE(limiter.TryTake());
}

}  // namespace
}  // namespace adamant::kube
