#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube_client/api/client.h"

// What has the name of one of a job's objects, and whose it is.
namespace adamant::kube {

/// Returns true if an object is of `job`, as its labels say.
bool IsOf(const Json& object, const JobIdentity& job);

/// The TrainingJob that an object is of: as its labels, and its owner, say.
struct Owner {
  std::string name;  ///< empty: it is not of a TrainingJob
  std::string uid;
};

Owner OwnerOf(const Json& object);

/// Returns whether that job exists, asked live. Errors: those of the client. Threads: any.
absl::StatusOr<bool> Exists(const Client& client, const std::string& ns, const Owner& owner);

/// Deletes this very object. OK too where it is gone, or another has its name by now. Errors: those
/// of the client. Threads: any.
absl::Status DeleteThis(const Client& client, const Resource& resource, const Json& object);

/// Makes way for an object of `job` where `there` has its name, which is not of that job. What is
/// of a job that does not exist any more is deleted: Kubernetes' garbage collector, which should
/// have, can miss it for good where a job was deleted and made anew while it was away. Its owner is
/// asked for live, and it is deleted by its UID. Returns FailedPrecondition, which says what it is
/// and what happens now; or an error of the client. Threads: any.
absl::Status MakeWay(const Client& client,
                     const Resource& resource,
                     const Json& there,
                     const JobIdentity& job);

/// Deletes the object of this name if it is of `job`: another's may have taken the name, and what
/// it holds is not the job's to delete. OK where none of the job's is there afterwards. Errors:
/// those of the client. Threads: any.
absl::Status DeleteIfOwn(const Client& client,
                         const Resource& resource,
                         const std::string& name,
                         const JobIdentity& job);

}  // namespace adamant::kube
