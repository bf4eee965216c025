#include "services/common/http/probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/services/common/http/http_client.h"

namespace adamant::http {
namespace {

using testing::HasSubstr;

TEST(ProbesTest, AnswerOnceTheyMay) {
  const auto probes = Probes::Start("127.0.0.1:0");
  ASSERT_TRUE(probes.ok()) << probes.status();
  EXPECT_THAT(Get((*probes)->address(), "/readyz"), HasSubstr(" 503 "));
  (*probes)->Answer("/readyz", true);
  EXPECT_THAT(Get((*probes)->address(), "/readyz"), HasSubstr(" 200 "));
  EXPECT_THAT(Get((*probes)->address(), "/healthz"), HasSubstr(" 503 "));
  (*probes)->Answer("/readyz", false);
  EXPECT_THAT(Get((*probes)->address(), "/readyz"), HasSubstr(" 503 "));
}

}  // namespace
}  // namespace adamant::http
