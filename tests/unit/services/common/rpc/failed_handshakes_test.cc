#include "services/common/rpc/tls/failed_handshakes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace adamant::rpc {
namespace {

using testing::HasSubstr;

constexpr char kVerifyFailed[] =
    "Handshake failed with fatal error SSL_ERROR_SSL: error:0A000086:SSL routines::certificate "
    "verify failed.";

TEST(HandshakeFailureInTest, TellsReasonsApart) {
  const std::string begin = "Handshake failed with fatal error SSL_ERROR_SSL: error:0A:SSL: ";
  EXPECT_EQ(HandshakeFailureIn(begin + "peer did not return a certificate."),
            HandshakeFailure::kNoCertificate);
  EXPECT_EQ(HandshakeFailureIn(kVerifyFailed), HandshakeFailure::kUntrusted);
  EXPECT_EQ(HandshakeFailureIn(begin + "wrong version number."), HandshakeFailure::kNoTls);
  EXPECT_EQ(HandshakeFailureIn(begin + "http request."), HandshakeFailure::kNoTls);
  EXPECT_EQ(HandshakeFailureIn(begin + "no shared cipher."), HandshakeFailure::kOther);
}

TEST(HandshakeFailureInTest, OtherLinesTellOfNone) {
  for (const char* line :
       {"", "No match found for server name: 127.0.0.1.", "certificate verify failed"}) {
    EXPECT_EQ(HandshakeFailureIn(line), std::nullopt) << line;
  }
}

TEST(FailedHandshakesTest, AreCountedByReason) {
  metrics::Registry registry;
  const FailedHandshakes handshakes(registry);
  FailedHandshakes::OnLine(kVerifyFailed);
  FailedHandshakes::OnLine(kVerifyFailed);
  FailedHandshakes::OnLine("No match found for server name: 127.0.0.1.");
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("adamant_tls_handshakes_failed_total{reason=\"untrusted\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("adamant_tls_handshakes_failed_total{reason=\"no_tls\"} 0\n"));
}

TEST(FailedHandshakesTest, NobodyCountsAfterwards) {
  metrics::Registry registry;
  { const FailedHandshakes handshakes(registry); }
  FailedHandshakes::OnLine(kVerifyFailed);
  EXPECT_THAT(registry.Text(),
              HasSubstr("adamant_tls_handshakes_failed_total{reason=\"untrusted\"} 0\n"));
}

}  // namespace
}  // namespace adamant::rpc
