#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube/api/job_identity.h"
#include "operator/kube/pods/objects/pod_settings.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

/// Pods that write to a job's output volume, as they are made.
namespace adamant::kube {

struct ModelToExport {
  std::uint64_t snapshot = 0;
  std::uint64_t epochs = 0;  ///< that have ended
};

/// The pod that writes a model and the epochs' results to the job's output volume:
/// "mnist-export-7". The ConfigMap of that name tells it what to fetch from where, the results are
/// in EpochObjects: it finds all of them as files in one folder.
nlohmann::json ExportPodObject(const JobIdentity& job,
                               const v1::TrainingJob& spec,
                               const ModelToExport& model,
                               const PodSettings& settings);
std::string ExportName(const std::string& job, std::uint64_t snapshot);

/// The pod that writes to a job's output volume before there is a model, to see whether it can:
/// "mnist-export-check". A node mounts it, and user and folder are those of exports.
nlohmann::json OutputTrialObject(const JobIdentity& job,
                                 const v1::TrainingJob& spec,
                                 const PodSettings& settings);

}  // namespace adamant::kube
