#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/control/control_server.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube/pods/objects/pod_settings.h"
#include "operator/kube/status/job_view.h"
#include "operator/kube_client/api/client.h"

namespace adamant::v1 {
class TrainingJobStatus;
}  // namespace adamant::v1

namespace adamant::kube {

/// Way in which the processes of one job talk to each other: decided as it begins, kept in its
/// status to its end, whatever operators do for other jobs by then.
/// Threads: one.
class JobSecurity {
 public:
  /// `settings`, which must outlive this: of the pods of jobs that begin now; with security they
  /// use TLS.
  JobSecurity(Client client, JobIdentity job, const PodSettings& settings);

  /// The job begins: decides, unless its status says that this was done. TLS is stored by `store`,
  /// which writes a status with what Tell says, before anything of the job is.
  /// Errors: as Resume, and those of `store`; FailedPrecondition where the API does not keep it.
  absl::Status Begin(const v1::TrainingJobStatus& status,
                     const std::function<absl::Status()>& store);

  /// The job has begun, as its status says. One that says nothing is from before there was TLS, if
  /// it is not older than what the last leader has decided, so that the API is asked for the
  /// newest. Errors: those of the API; FailedPrecondition where the job cannot go on so, as
  /// operators do without TLS or there is no authority yet, and what to do.
  absl::Status Resume(v1::TrainingJobStatus status);

  /// Says in a status what was decided, if anything was, and sets condition Secured. `now`: as the
  /// API writes times.
  void Tell(const JobView& view, const std::string& now, v1::TrainingJobStatus& status) const;

  [[nodiscard]] control::StreamSecurity streams() const {
    return streams_.value_or(control::StreamSecurity::kPlain);
  }

  /// Returns the settings of this job's pods, which change when it is decided.
  [[nodiscard]] const PodSettings& pods() const { return pods_; }

 private:
  void Set(control::StreamSecurity streams);
  [[nodiscard]] absl::Status CheckCanUseTls() const;
  [[nodiscard]] absl::StatusOr<v1::TrainingJobStatus> Read() const;

  const Client client_;
  const JobIdentity job_;
  const PodSettings& settings_;
  std::optional<control::StreamSecurity> streams_;  // none: not decided
  PodSettings pods_;
};

}  // namespace adamant::kube
