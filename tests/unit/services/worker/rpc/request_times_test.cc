#include "services/worker/rpc/request_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.h"

namespace adamant::worker {
namespace {

using testing::HasSubstr;

TEST(RequestTimesTest, AReplyIsTimedOnceAndOneThatIsTooLateNotAtAll) {
  FakeClock clock;
  metrics::Registry registry;
  const metrics::Histogram seconds = registry.AddHistogram("adamant_test_seconds", "help", {1});
  RequestTimes requests(clock);
  requests.OnSent(1);
  requests.OnSent(2);
  clock.Advance(std::chrono::seconds(2));
  requests.OnReply(1, seconds);
  requests.OnReply(1, seconds);
  requests.OnReply(7, seconds);
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_seconds_count 1\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_seconds_sum 2\n"));

  clock.Advance(RequestTimes::kTimeout);
  requests.OnSent(3);
  requests.ForgetOld();
  requests.OnReply(2, seconds);
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_seconds_count 1\n"));
  requests.OnReply(3, seconds);
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_seconds_count 2\n"));
}

}  // namespace
}  // namespace adamant::worker
