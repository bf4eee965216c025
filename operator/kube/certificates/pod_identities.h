#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube_client/api/resource.h"
#include "services/common/security/peer_identity.h"
#include "services/common/security/token_verifier.h"

namespace adamant::kube {

/// Tells which process a pod is of, as the operator's caches show pods and jobs. Only the newest
/// generation of a slot has a name: a process that was replaced may yet live.
/// Threads: any, as those who answer below.
class PodIdentities {
 public:
  using PodPointer = std::shared_ptr<const PodView>;

  /// Content of the caches now.
  struct Sources {
    std::function<PodPointer(const ObjectKey& pod)> pod;  ///< null: none is seen
    std::function<std::vector<PodPointer>(const std::string& job_uid)> pods_of;
    std::function<std::string(const ObjectKey& job)> uid_of;  ///< empty: no job is seen
  };

  PodIdentities(std::string trust_domain, Sources sources);

  /// Returns who the process in a pod is. Errors: Unavailable while pod or job are not seen;
  /// PermissionDenied where another pod has taken its place, or it has ended; NotFound where it is
  /// of no process.
  [[nodiscard]] absl::StatusOr<security::PeerIdentity> Find(const security::PodToken& token) const;

 private:
  [[nodiscard]] absl::Status CheckPresent(const PodView& pod) const;

  const std::string trust_domain_;
  const Sources sources_;
};

}  // namespace adamant::kube
