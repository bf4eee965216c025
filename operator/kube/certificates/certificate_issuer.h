#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/certificates/authority_keeper.h"
#include "operator/kube/certificates/certificate_observer.h"
#include "operator/kube/certificates/certificate_service.h"
#include "operator/kube/certificates/cluster_keys.h"
#include "operator/kube/certificates/pod_identities.h"
#include "operator/kube_client/api/client.h"
#include "services/common/base/clock.h"
#include "services/common/security/identity_store.h"

namespace adamant::rpc {
class Server;
}  // namespace adamant::rpc

namespace adamant::kube {

/// All that an operator has to do with certificates: the authority, its own certificate, and, while
/// it leads, the port where processes get theirs.
/// Threads: Start, Stop, Serve and StopServing by one at a time; the others by any.
class CertificateIssuer {
 public:
  struct Options {
    ObjectKey secret;                         ///< of the authority, in the operators' namespace
    std::string issuer_secret{};              ///< as AuthorityKeeper's
    std::string trust_domain;                 ///< that it signs for
    std::chrono::seconds life{};              ///< of certificates
    std::string listen;                       ///< host:port where certificates are issued
    CertificateObserver* observer = nullptr;  ///< must outlive this; null: none
  };

  /// `clock`, `sleeper` and what `pods` asks must outlive this.
  CertificateIssuer(const Client& client,
                    const Options& options,
                    PodIdentities::Sources pods,
                    const Clock& clock,
                    Sleeper& sleeper);
  ~CertificateIssuer();
  CertificateIssuer(const CertificateIssuer&) = delete;
  CertificateIssuer& operator=(const CertificateIssuer&) = delete;

  /// Begins to keep the authority. `on_identity` is called once, on a thread of its own, when this
  /// operator has a certificate.
  void Start(std::function<void()> on_identity);

  /// Ends it all. Idempotent.
  void Stop();

  /// Says whether this operator leads: then it makes the authority and rolls it over.
  void SetLeads(bool leads) { keeper_.SetLeads(leads); }

  /// Issues certificates from now on: to be called when there is an identity. Errors: Unavailable.
  absl::Status Serve();
  void StopServing();

  /// As AuthorityKeeper's.
  [[nodiscard]] std::shared_ptr<const security::IdentityStore> identity() const {
    return keeper_.identity();
  }

  /// Returns the roots to be trusted, as PEM; empty while there is no authority.
  [[nodiscard]] std::string roots() const;

  /// host:port with the port in use, while it serves.
  [[nodiscard]] const std::string& address() const;

 private:
  const Options options_;
  AuthorityKeeper keeper_;
  ClusterKeys keys_;
  const PodIdentities pods_;
  CertificateService service_;
  std::unique_ptr<rpc::Server> server_;  // null: it does not serve
};

}  // namespace adamant::kube
