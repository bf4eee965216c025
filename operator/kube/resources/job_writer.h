#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/api/failed_writes.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube/pods/reconcile.h"
#include "operator/kube_client/api/client.h"
#include "operator/kube_client/api/event_recorder.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Writes what belongs to one job, and remembers what the API does not let it write.
/// Threads: one.
class JobWriter {
 public:
  /// Told why the job cannot go on.
  using Refuse = std::function<void(const std::string& why)>;

  /// Clock and recorder must outlive this.
  JobWriter(const Client& client,
            JobIdentity job,
            EventRecorder& events,
            const Clock& clock,
            Refuse refuse);

  [[nodiscard]] const Client& client() const { return client_; }
  [[nodiscard]] const JobIdentity& job() const { return job_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  FailedWrites& failed() { return failed_; }

  /// Notes how a write ended. `what` begins with a verb: "create pod worker-0".
  void Note(const std::string& what, const absl::Status& status);

  /// Creates an object and returns its UID. One that is there already is the one that an unseen
  /// write of ours has made, if it is this job's; else it makes way, or the error says whose it is.
  absl::StatusOr<std::string> CreateOnce(const Resource& resource, nlohmann::json object);

  /// Creates a claim; null: nothing.
  absl::Status CreateClaim(const nlohmann::json& claim);

  /// Deletes a pod; false: it is gone already, or another has its name.
  absl::StatusOr<bool> RemovePod(const DeletePod& removal);

  /// Returns why a write failed; what is not valid will not be later either: it is told, ends the
  /// job, and is no error any more.
  absl::Status JudgeRefusal(const std::string& what, const absl::Status& why);

  /// Records an event of the job.
  void Record(bool warning, std::string reason, std::string message) const;

 private:
  const Client client_;
  const JobIdentity job_;
  EventRecorder& events_;
  const Clock& clock_;
  const Refuse refuse_;
  FailedWrites failed_;
};

}  // namespace adamant::kube
