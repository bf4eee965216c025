#include "services/common/metrics/exposer.h"

#include "services/common/base/status_macros.h"

namespace adamant::metrics {

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Start(const std::string& address,
                                                        const Registry& registry) {
  ADAMANT_ASSIGN_OR_RETURN(
      auto server, http::HttpServer::Start(address, [&registry](const http::Request& request) {
        if (request.path != "/metrics") {
          return http::Response{.body = "metrics are at /metrics\n"};
        }
        return http::Response{.code = 200,
                              .content_type = "text/plain; version=0.0.4; charset=utf-8",
                              .body = registry.Text()};
      }));
  return std::unique_ptr<Exposer>(new Exposer(std::move(server)));
}

}  // namespace adamant::metrics
