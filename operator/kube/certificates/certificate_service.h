#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "operator/kube/certificates/certificate_observer.h"
#include "operator/kube/certificates/cluster_keys.h"
#include "operator/kube/certificates/pod_identities.h"
#include "operator/kube/certificates/refusal_log.h"
#include "services/common/base/clock.h"
#include "services/common/security/certificate_authority.h"

namespace adamant::v1 {
class Certificate;
class CertificateRequest;
}  // namespace adamant::v1

namespace adamant::kube {

/// Method that issues certificates, and the most bytes of a request for one.
inline constexpr char kIssueMethod[] = "/adamant.v1.Certificates/Issue";
inline constexpr std::uint64_t kMostIssueBytes = std::uint64_t{16} << 10;

/// Issues certificates to the processes in a cluster's pods: what a pod's token says decides for
/// whom, not what is asked for.
/// Threads: any; calls may wait for the API.
class CertificateService {
 public:
  using Authority = std::shared_ptr<const security::CertificateAuthority>;

  /// Parts that it works with: all outlive it.
  struct Parts {
    ClusterKeys& keys;
    const PodIdentities& pods;
    std::function<absl::StatusOr<Authority>()> authority;  ///< Unavailable: none to be had now
    const Clock& clock;
    CertificateObserver* observer = nullptr;  ///< null: none
  };

  /// `life`: of certificates.
  CertificateService(Parts parts, std::chrono::seconds life);

  /// Answers a request. Errors: as certificates.proto says.
  absl::StatusOr<v1::Certificate> Issue(const v1::CertificateRequest& request);

  /// Likewise, as bytes.
  absl::StatusOr<std::string> IssueSerialized(const std::string& request);

 private:
  absl::StatusOr<security::PodToken> Verify(const std::string& token);
  absl::StatusOr<security::PeerIdentity> Find(const security::PodToken& token);
  absl::Status Refuse(CertificateObserver::Refusal reason,
                      const std::string& pod,
                      const absl::Status& why);

  const Parts parts_;
  const std::chrono::seconds life_;
  RefusalLog log_;
};

}  // namespace adamant::kube
