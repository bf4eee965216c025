#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace adamant::v1 {
class JobSpec;
}  // namespace adamant::v1

namespace adamant::kube {

/// Adds to a pod what those look at who place all pods of a job together, or none
/// (spec.pods.scheduling). `group`: the name that its pods have in common, and no others; under it
/// Kueue counts also those that have ended.
void AddGang(const std::string& group, const v1::JobSpec& spec, nlohmann::json& pod);

}  // namespace adamant::kube
