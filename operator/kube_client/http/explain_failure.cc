#include "operator/kube_client/http/explain_failure.h"

#include <openssl/err.h>

#include <system_error>

namespace adamant::kube {
namespace {

// asio's end of file, without and with TLS.
constexpr int kEndOfFile = 2;
constexpr int kTruncated = 1;

// OpenSSL's numbers have a library in their upper bits.
constexpr int kSmallestOfTls = 1 << 16;

}  // namespace

std::string ExplainFailure(std::string_view what, int value) {
  const std::string text(what);
  if (what.find("resolving") != std::string_view::npos || value == 0) {
    return text;
  }
  if (value >= kSmallestOfTls) {
    const char* reason = ERR_reason_error_string(static_cast<unsigned long>(value));
    return reason == nullptr ? text : text + ": " + reason;
  }
  if (value == kEndOfFile || value == kTruncated) {
    return text + ": the server has closed the connection";
  }
  if (value == static_cast<int>(std::errc::host_unreachable)) {  // the library says so of both
    return text + ": connection refused, or no route to the host";
  }
  return text + ": " + std::generic_category().message(value);
}

}  // namespace adamant::kube
