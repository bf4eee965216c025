#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "operator/kube_client/api/client.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/memory_api_server.h"
#include "tests/unit/services/common/security/tokens.h"

namespace adamant::kube {

/// A cluster that publishes the keys of its tokens, in the minute in which they are valid.
class ClusterRig {
 public:
  ClusterRig() {
    clock_.Advance(std::chrono::seconds(security::kSeconds) - clock_.Now().time_since_epoch());
    server_.SetAnswers([this](const HttpRequest& request) { return AnswerTo(request); });
  }

  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  MemoryApiServer server_{clock_};
  Client client_{server_, clock_, sleeper_, {.rate = 1e6, .burst = 1e6}};
  Json keys_ = security::TheCluster().KeySet();  ///< that it publishes
  bool is_away_ = false;                         ///< then it answers nothing of its keys
  int readings_ = 0;                             ///< of the keys

 private:
  std::optional<HttpResponse> AnswerTo(const HttpRequest& request) {
    const bool is_configuration = request.target == "/.well-known/openid-configuration";
    const bool is_keys = request.target == "/openid/v1/jwks";
    if (!is_configuration && !is_keys) {
      return std::nullopt;
    }
    if (is_away_) {
      return HttpResponse{.status = 500, .body = "{}"};
    }
    readings_ += is_keys ? 1 : 0;
    const Json configuration = {{"issuer", security::kIssuer}};
    return HttpResponse{.status = 200, .body = is_keys ? keys_.dump() : configuration.dump()};
  }
};

}  // namespace adamant::kube
