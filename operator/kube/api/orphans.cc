#include "operator/kube/api/orphans.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
Owner OwnerOf(const Json& object) {
  const std::string uid = StringAt(object, {"metadata", "labels", kJobUidLabel});
  const Json* owners = Find(object, {"metadata", "ownerReferences"});
  if (uid.empty() || owners == nullptr || !owners->is_array()) {
    return {};
  }
  for (const Json& owner : *owners) {
    const std::string version = StringAt(owner, {"apiVersion"});
    if (version.starts_with(std::string(kGroup) + "/") &&
        StringAt(owner, {"kind"}) == kTrainingJobs.kind && StringAt(owner, {"uid"}) == uid) {
      return {.name = StringAt(owner, {"name"}), .uid = uid};
    }
  }
  return {};
}

absl::StatusOr<bool> Exists(const Client& client, const std::string& ns, const Owner& owner) {
  const auto found = client.Get(kTrainingJobs, {ns, owner.name});
  if (!found.ok() && !absl::IsNotFound(found.status())) {
    return found.status();
  }
  return found.ok() && UidOf(*found) == owner.uid;
}

absl::Status DeleteThis(const Client& client, const Resource& resource, const Json& object) {
  const absl::Status deleted = client.Delete(resource, KeyOf(object), {.uid = UidOf(object)});
  return absl::IsNotFound(deleted) || absl::IsAborted(deleted) ? absl::OkStatus() : deleted;
}

bool IsOf(const Json& object, const JobIdentity& job) {
  return StringAt(object, {"metadata", "labels", kJobUidLabel}) == job.uid;
}

absl::Status MakeWay(const Client& client,
                     const Resource& resource,
                     const Json& there,
                     const JobIdentity& job) {
  const ObjectKey key = KeyOf(there);
  const std::string name = std::string(resource.kind) + " " + ToString(key);
  const Owner owner = OwnerOf(there);
  if (owner.name.empty()) {
    return absl::FailedPreconditionError(
        name + " exists and is of no TrainingJob; delete it, or give the job another name");
  }
  if (!StringAt(there, {"metadata", "deletionTimestamp"}).empty()) {
    return absl::FailedPreconditionError(name + " of an earlier job is still being deleted");
  }
  ADAMANT_ASSIGN_OR_RETURN(const bool exists, Exists(client, job.key.ns, owner));
  if (exists) {
    return absl::FailedPreconditionError(name + " is of the TrainingJob " + owner.name +
                                         "; delete that job, or give this one another name");
  }
  LogWarning("deletes what a job has left behind that does not exist any more",
             {{"object", name}, {"of", owner.uid}});
  ADAMANT_RETURN_IF_ERROR(DeleteThis(client, resource, there));
  return absl::FailedPreconditionError(name +
                                       " was left behind by an earlier job that was deleted, and "
                                       "is being deleted too");
}

absl::Status DeleteIfOwn(const Client& client,
                         const Resource& resource,
                         const std::string& name,
                         const JobIdentity& job) {
  const ObjectKey key{job.key.ns, name};
  const auto there = client.Get(resource, key);
  if (absl::IsNotFound(there.status()) || (there.ok() && !IsOf(*there, job))) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(there.status());
  return DeleteThis(client, resource, *there);
}

}  // namespace adamant::kube
