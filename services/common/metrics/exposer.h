#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/http/http_server.h"
#include "services/common/metrics/metrics.h"

namespace adamant::metrics {

/// Serves a registry at http://ADDRESS/metrics until destroyed.
/// Threads: any; starts one, which answers.
class Exposer {
 public:
  /// `address` is HOST:PORT or [IPV6]:PORT; port 0: the kernel chooses. `registry` must outlive the
  /// exposer. Errors: those of http::HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<Exposer>> Start(const std::string& address,
                                                        const Registry& registry);

  /// host:port with the port in use.
  [[nodiscard]] const std::string& address() const { return server_->address(); }

 private:
  explicit Exposer(std::unique_ptr<http::HttpServer> server) : server_(std::move(server)) {}

  const std::unique_ptr<http::HttpServer> server_;
};

}  // namespace adamant::metrics
