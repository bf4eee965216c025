#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube_client/api/client.h"

namespace adamant::kube {

/// Access of a job's controller to the objects that hold its state, to read and write them: each
/// belongs to the job, names its last writer, and changes by compare-and-swap on its
/// resourceVersion. Threads: any.
class StoredObjects {
 public:
  /// `writer` names this controller among all that ever write; it must be random.
  StoredObjects(Client client, JobIdentity job, std::string writer);

  [[nodiscard]] const Client& client() const { return client_; }
  [[nodiscard]] const JobIdentity& job() const { return job_; }

  /// Errors: those of the client; MakeWay's for an object that is not
  /// of this job.
  absl::StatusOr<Json> Get(const Resource& resource, const ObjectKey& key) const;

  /// Creates the object, or replaces the one of resourceVersion `replaced`; of its metadata only
  /// the name counts. Returns the new resourceVersion. Errors: Aborted when another controller has
  /// written it; NotFound where `replaced` is gone; those of Get.
  absl::StatusOr<std::string> Write(const Resource& resource,
                                    Json object,
                                    const std::string& replaced) const;

  /// This controller was the last to write it.
  [[nodiscard]] bool IsOwn(const Json& object) const;

 private:
  const Client client_;
  const JobIdentity job_;
  const std::string writer_;
};

}  // namespace adamant::kube
