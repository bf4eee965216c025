#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/core/state/actions.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube/pods/gang.h"
#include "operator/kube/pods/objects/pod_settings.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

/// Pods of a job's processes, as they are made.
namespace adamant::kube {

/// The pod of a process: hardened defaults, with the role's template of the spec merged over them.
/// A parameter server's data is on the claim of `volume`, that of others goes with the pod.
/// `group`: the one of Kueue that it is to be in, where the spec names a queue.
nlohmann::json PodObject(const JobIdentity& job,
                         const v1::TrainingJob& spec,
                         const controller::StartProcess& process,
                         std::uint64_t volume,
                         const PodSettings& settings,
                         const PodGroup& group = {});

}  // namespace adamant::kube
