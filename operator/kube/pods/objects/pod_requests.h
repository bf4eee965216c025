#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/core/state/messages.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

// What pods ask their node for where a job's user says nothing. They have no limits by themselves.
namespace adamant::kube {

/// Adds requests to our container of a process's pod, after its template was merged: processor time
/// by what it does, and the memory that it is expected to need, which `adamant plan` shows. Of a
/// resource for which the template has a request or a limit, of the container or of the whole pod,
/// none is added. `job` has its defaults.
void AddRequests(const v1::TrainingJob& job, controller::Role role, nlohmann::json& pod);

/// The same, of a pod that writes to a job's output.
void AddOutputRequests(nlohmann::json& pod);

}  // namespace adamant::kube
