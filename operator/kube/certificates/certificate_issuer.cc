#include "operator/kube/certificates/certificate_issuer.h"

#include <utility>

#include "operator/kube/volumes/pod_security.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/server.h"

namespace adamant::kube {
namespace {

constexpr std::chrono::milliseconds kTimeout{2'000};  // of a request, for which others may wait

// What all that callers have sent may take. Streams are cut beyond it.
constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{8} << 20;

}  // namespace

CertificateIssuer::CertificateIssuer(const Client& client,
                                     const Options& options,
                                     PodIdentities::Sources pods,
                                     const Clock& clock,
                                     Sleeper& sleeper)
    : options_(options),
      keeper_(client.With(kTimeout).WithoutRetries(),
              {.secret = options.secret,
               .issuer_secret = options.issuer_secret,
               .trust_domain = options.trust_domain,
               .life = options.life,
               .observer = options.observer},
              clock,
              sleeper),
      keys_(
          client.With(kTimeout).WithoutRetries(), clock, CertificateAudience(options.trust_domain)),
      pods_(options.trust_domain, std::move(pods)),
      service_({.keys = keys_,
                .pods = pods_,
                .authority = [this] { return keeper_.authority(); },
                .clock = clock,
                .observer = options.observer},
               options.life) {}

CertificateIssuer::~CertificateIssuer() { Stop(); }

void CertificateIssuer::Start(std::function<void()> on_identity) {
  keeper_.Start(std::move(on_identity));
}

void CertificateIssuer::Stop() {
  keeper_.Stop();
  StopServing();
}

// Callers are strangers for as long as they are there: the door never lets one stay.
absl::Status CertificateIssuer::Serve() {
  rpc::UnaryMethod issue{
      .name = kIssueMethod,
      .max_request_bytes = kMostIssueBytes,
      .handler = [this](const std::string& request, const rpc::Caller& /*caller*/) {
        return service_.IssueSerialized(request);
      }};
  ADAMANT_ASSIGN_OR_RETURN(
      server_,
      rpc::StartServer({.address = options_.listen,
                        .max_message_bytes = kMostIssueBytes,
                        .max_memory_bytes = kMaxMemoryBytes,
                        .has_door = true,
                        .security = rpc::ServerSecurity{.identity = keeper_.identity(),
                                                        .method_of_strangers = kIssueMethod}},
                       {},
                       {},
                       {std::move(issue)}));
  return absl::OkStatus();
}

void CertificateIssuer::StopServing() {
  if (server_ != nullptr) {
    server_->Stop();
    server_.reset();
  }
}

std::string CertificateIssuer::roots() const {
  const auto authority = keeper_.authority();
  return authority.ok() ? (*authority)->roots() : "";
}

const std::string& CertificateIssuer::address() const { return server_->address(); }

}  // namespace adamant::kube
