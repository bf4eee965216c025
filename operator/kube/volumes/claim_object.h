#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube/api/job_identity.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

// The PersistentVolumeClaims that are made for a job.
namespace adamant::kube {

/// "mnist-parameter-server-1-2": of the claim that is the slot's second volume.
std::string ClaimName(const std::string& job, std::uint32_t slot, std::uint64_t volume);

/// The claim of a parameter server.
nlohmann::json ClaimObject(const JobIdentity& job,
                           const v1::TrainingJob& spec,
                           std::uint32_t slot,
                           std::uint64_t volume);

/// The claim for the output; null when the spec names one of the user's.
nlohmann::json OutputClaimObject(const JobIdentity& job, const v1::TrainingJob& spec);
std::string OutputClaimName(const std::string& job, const v1::TrainingJob& spec);

}  // namespace adamant::kube
