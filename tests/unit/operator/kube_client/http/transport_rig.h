#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "operator/kube_client/auth/config.h"
#include "operator/kube_client/auth/credentials.h"
#include "operator/kube_client/http/cpprest_client.h"
#include "operator/kube_client/http/http_transport.h"
#include "tests/fakes/kube/scripted_api_server.h"

namespace adamant::kube {

/// How to reach `server`, trusting its authority.
inline Config ConfigFor(const fakes::ScriptedApiServer& server) {
  Config config;
  config.source = "the test";
  config.server = *ParseEndpoint(server.url());
  config.authorities.text = server.authority().certificate();
  return config;
}

/// A transport with all that it needs.
class TransportRig {
 public:
  explicit TransportRig(const Config& config, const HttpTransportOptions& options = {})
      : credentials_(config, clock_),
        transport_(config, credentials_, &MakeCpprestClient, options) {}

  Transport& operator*() { return transport_; }
  Transport* operator->() { return &transport_; }

  absl::StatusOr<HttpResponse> Get(const std::string& target) {
    return transport_.Send({.target = target}, Cancellation());
  }

 private:
  SystemClock clock_;
  Credentials credentials_;
  HttpTransport transport_;
};

}  // namespace adamant::kube
