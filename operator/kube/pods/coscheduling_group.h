#pragma once

#include "absl/status/status.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube_client/api/client.h"

// The PodGroup of the coscheduling plugin that a job names (spec.pods.scheduling.podGroup). Without
// it the plugin places none of the job's pods.
namespace adamant::kube {

inline constexpr Resource kPodGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"};

/// Makes the PodGroup of that name, owned by the job, where there is none, and puts right one of
/// the job's in which somebody has changed how many pods it waits for. Another's, as its user's, is
/// left as it is.
///
/// It waits for all `processes` of the job when it `begins`; later for as many as there are left of
/// those: one that is added and finds no room must not keep a lost one from its place.
///
/// OK also where it is there since. Errors: MakeWay's where it is of another TrainingJob; those of
/// the client. Threads: any.
absl::Status KeepPodGroup(const Client& client,
                          const JobIdentity& job,
                          const std::string& name,
                          int processes,
                          bool begins);

}  // namespace adamant::kube
