#include "operator/kube/certificates/pod_identities.h"

#include <algorithm>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

security::Role RoleOf(const PodView& pod) {
  if (!pod.IsProcess()) {
    return security::Role::kExporter;
  }
  switch (pod.pod.process.id.role) {
    case controller::Role::kParameterServer:
      return security::Role::kParameterServer;
    case controller::Role::kDataServer:
      return security::Role::kDataServer;
    case controller::Role::kWorker:
      return security::Role::kWorker;
  }
  return security::Role::kWorker;
}

std::uint32_t SlotOf(const PodView& pod) { return pod.IsProcess() ? pod.pod.process.id.slot : 0; }

std::uint64_t GenerationOf(const PodView& pod) {
  return pod.IsProcess() ? pod.pod.process.generation : pod.output->snapshot.value_or(0);
}

// Whether `other` has taken the place of `pod`.
bool Replaces(const PodView& other, const PodView& pod) {
  return other.ns == pod.ns && other.output != kOutputTrial && pod.output != kOutputTrial &&
         RoleOf(other) == RoleOf(pod) && SlotOf(other) == SlotOf(pod) &&
         GenerationOf(other) > GenerationOf(pod);
}

}  // namespace

PodIdentities::PodIdentities(std::string trust_domain, Sources sources)
    : trust_domain_(std::move(trust_domain)), sources_(std::move(sources)) {}

absl::StatusOr<security::PeerIdentity> PodIdentities::Find(const security::PodToken& token) const {
  const PodPointer pod = sources_.pod({token.name_space, token.pod_name});
  if (pod == nullptr || pod->pod.uid != token.pod_uid) {
    return absl::UnavailableError("the pod is not seen yet");
  }
  if (pod->output == kOutputTrial) {
    return absl::NotFoundError("the pod is of no process that talks to others");
  }
  // Labels are anybody's who may make pods: the job must be one of the pod's namespace. One of its
  // name with another UID may be the one before.
  const std::string job_uid = sources_.uid_of({pod->ns, pod->job_name});
  if (job_uid.empty() || job_uid != pod->job_uid) {
    return absl::UnavailableError("the pod's job is not seen yet");
  }
  ADAMANT_RETURN_IF_ERROR(CheckPresent(*pod));
  return security::PeerIdentity{.trust_domain = trust_domain_,
                                .name_space = pod->ns,
                                .role = RoleOf(*pod),
                                .job_uid = job_uid,
                                .slot = SlotOf(*pod),
                                .generation = GenerationOf(*pod)};
}

absl::Status PodIdentities::CheckPresent(const PodView& pod) const {
  if (pod.pod.state == ObservedPod::State::kEnded || pod.pod.state == ObservedPod::State::kGone) {
    return absl::PermissionDeniedError("the pod has ended");
  }
  const bool is_replaced =
      std::ranges::any_of(sources_.pods_of(pod.job_uid),
                          [&](const PodPointer& other) { return Replaces(*other, pod); });
  return is_replaced ? absl::PermissionDeniedError("another pod has taken its place")
                     : absl::OkStatus();
}

}  // namespace adamant::kube
