#include "services/common/metrics/exposer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/integration/services/common/http/http_client.h"

namespace adamant::metrics {
namespace {

using testing::HasSubstr;

TEST(ExposerTest, ServesTheRegistryOnAPortTheKernelChose) {
  Registry registry;
  registry.AddGauge("adamant_test_level", "Level.").Set(42);
  const auto exposer = Exposer::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(exposer.ok()) << exposer.status();
  const std::string reply = http::Get((*exposer)->address(), "/metrics");
  EXPECT_THAT(reply, HasSubstr("200 OK"));
  EXPECT_THAT(reply, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(reply, HasSubstr("adamant_test_level 42"));
}

TEST(ExposerTest, OtherPathsSayWhereTheMetricsAre) {
  Registry registry;
  const auto exposer = Exposer::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(exposer.ok()) << exposer.status();
  const std::string reply = http::Get((*exposer)->address(), "/");
  EXPECT_THAT(reply, HasSubstr("404 Not Found"));
  EXPECT_THAT(reply, HasSubstr("/metrics"));
}

}  // namespace
}  // namespace adamant::metrics
