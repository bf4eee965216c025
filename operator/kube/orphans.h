#pragma once

#include <string>

#include "absl/status/status.h"
#include "operator/kube/client/client.h"
#include "operator/kube/pod_object.h"

namespace adamant::kube {

/// Makes way for an object of `job` where `there` has its name, which is not of that job. What is
/// of a job that does not exist any more is deleted: Kubernetes' garbage collector, which should
/// have, can miss it for good where a job was deleted and made anew while it was away. Its owner is
/// asked for live, and it is deleted by its UID. Returns FailedPrecondition, which says what it is
/// and what happens now; or an error of the client. Threads: any.
absl::Status MakeWay(const Client& client,
                     const Resource& resource,
                     const Json& there,
                     const JobIdentity& job);

}  // namespace adamant::kube
