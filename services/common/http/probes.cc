#include "services/common/http/probes.h"

#include "services/common/base/status_macros.h"

namespace adamant::http {

absl::StatusOr<std::unique_ptr<Probes>> Probes::Start(const std::string& address) {
  std::unique_ptr<Probes> probes(new Probes);
  ADAMANT_ASSIGN_OR_RETURN(
      probes->server_, HttpServer::Start(address, [self = probes.get()](const Request& request) {
        return self->Respond(request.path);
      }));
  return probes;
}

void Probes::Answer(const std::string& path, bool yes) {
  const MutexLock lock(mutex_);
  if (yes) {
    answered_.insert(path);
  } else {
    answered_.erase(path);
  }
}

Response Probes::Respond(std::string_view path) {
  const MutexLock lock(mutex_);
  return answered_.contains(path) ? Response{.code = 200, .body = "ok\n"}
                                  : Response{.code = 503, .body = "not yet\n"};
}

}  // namespace adamant::http
