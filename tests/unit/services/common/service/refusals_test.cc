#include "services/common/service/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "services/common/rpc/tls/server_security.h"

namespace adamant::service {
namespace {

using testing::HasSubstr;

TEST(RefusalsTest, AreCountedByMethodAndReason) {
  metrics::Registry registry;
  Refusals refusals(registry);
  refusals.Add({.method = "/adamant.v1.DataServer/Work", .peer = "", .why = "why"});
  refusals.Add({.method = "/adamant.v1.DataServer/Work", .peer = "spiffe://a", .why = "why"});
  refusals.Add({.method = "/adamant.v1.DataServer/Work", .peer = "spiffe://b", .why = "why"});
  const std::string text = registry.Text();
  const std::string work = "adamant_rpc_refused_total{method=\"/adamant.v1.DataServer/Work\"";
  EXPECT_THAT(text, HasSubstr(work + ",reason=\"unauthenticated\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(work + ",reason=\"denied\"} 2\n"));
}

TEST(RefusalsTest, MethodsWithoutARuleAreOneMore) {
  metrics::Registry registry;
  Refusals refusals(registry);
  for (const char* method : {"", "/", "/adamant.v1.DataServer/Unknown"}) {
    refusals.Add({.method = method, .peer = "spiffe://a", .why = "why"});
  }
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("adamant_rpc_refused_total{method=\"other\",reason=\"denied\"} 3\n"));
  EXPECT_EQ(text.find("Unknown"), std::string::npos);
}

}  // namespace
}  // namespace adamant::service
