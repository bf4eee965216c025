#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/api/job_identity.h"

namespace adamant::v1 {
class JobSpec;
}  // namespace adamant::v1

// Who may talk to a job's pods, and with whom they may talk.
namespace adamant::kube {

/// Settings that the policies of all jobs have in common.
struct NetworkSettings {
  std::string operators_namespace;
  std::set<int> operators_ports;                ///< where they listen for processes of jobs
  std::vector<std::string> metrics_namespaces;  ///< whose pods may read metrics; empty: none
  std::vector<int> dns_ports;                   ///< of the cluster's DNS
};

/// The NetworkPolicies of a job: one for each role, and one for the pods that write to its output.
/// They let through what its processes need of each other and of the operators, names, and the
/// ports of the servers that its data is fetched from; all else is denied. What a user's containers
/// need beside that is for policies of the user's: Kubernetes lets through what any of them does.
std::vector<nlohmann::json> JobPolicies(const JobIdentity& job,
                                        const v1::JobSpec& spec,
                                        const NetworkSettings& settings);

}  // namespace adamant::kube
