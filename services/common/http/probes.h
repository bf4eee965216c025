#pragma once

#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"
#include "services/common/http/http_server.h"

namespace adamant::http {

/// Answers Kubernetes' probes, on a port of their own: whoever keeps the port of the metrics busy
/// cannot have the pod killed. Threads: any.
class Probes {
 public:
  /// Errors: those of HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<Probes>> Start(const std::string& address);

  /// Sets whether GET `path` is answered with 200 from now on; 503 else.
  void Answer(const std::string& path, bool yes);

  /// host:port with the port in use.
  [[nodiscard]] const std::string& address() const { return server_->address(); }

 private:
  Probes() = default;
  Response Respond(std::string_view path);

  Mutex mutex_;
  std::set<std::string, std::less<>> answered_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> server_;  // last: it calls Respond
};

}  // namespace adamant::http
