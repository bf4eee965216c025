#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube_client/api/resource.h"

// Which objects belong to a job.
namespace adamant::kube {

/// Labels of everything that belongs to a job.
inline constexpr char kJobLabel[] = "adamant.dev/job";         ///< its name
inline constexpr char kJobUidLabel[] = "adamant.dev/job-uid";  ///< its UID
/// Labels of a process' pod.
inline constexpr char kRoleLabel[] = "adamant.dev/role";
inline constexpr char kSlotLabel[] = "adamant.dev/slot";
inline constexpr char kGenerationLabel[] = "adamant.dev/generation";
/// Label of a pod that writes to a job's output: the snapshot's number, or that it only tries to.
inline constexpr char kExportLabel[] = "adamant.dev/export";
inline constexpr char kExportOfTrial[] = "check";
/// Label selector of all that belongs to any job.
inline constexpr char kOursSelector[] = "app.kubernetes.io/managed-by=adamant-operator";

/// Job that objects belong to.
struct JobIdentity {
  ObjectKey key;
  std::string uid;
};

/// metadata of an object of the job: name, namespace, labels, and the job as its owner.
nlohmann::json MetadataOf(const JobIdentity& job, const std::string& name);

}  // namespace adamant::kube
