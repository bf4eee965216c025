#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "operator/kube_client/api/client.h"
#include "operator/kube_client/base/transport.h"

namespace adamant::kube {

/// One request, before it is dressed up.
struct Client::Call {
  std::string_view method;
  std::string target;
  std::string body = {};
  std::string content_type = {};
};

/// How long the server asks to wait before the request is sent again; only if it says that it has
/// not acted on it.
std::optional<std::chrono::milliseconds> RetryAfter(const HttpResponse& response);

/// "&labelSelector=…&fieldSelector=…", as far as they are given.
std::string SelectionQuery(const Selection& selection);

}  // namespace adamant::kube
