#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/pods/objects/pod_settings.h"
#include "operator/kube/pods/reconcile.h"
#include "operator/kube/resources/job_writer.h"
#include "operator/kube/resources/output_attempts.h"
#include "operator/kube/status/job_view.h"

namespace adamant::kube {

/// Trial of whether a job's model will find its way out, made before anything is trained: a claim
/// of the user's is waited for, and tried by a pod that writes to it.
/// Threads: one.
class OutputTrial {
 public:
  /// The arguments must outlive this.
  OutputTrial(JobWriter& writer, const PodSettings& pods)
      : writer_(writer), pods_(pods), attempts_(writer.clock()) {}

  /// The job begins (again): `written` says of which claim its status knows that it can be written
  /// to (WrittenOutputText).
  void Begin(std::string written);

  /// Looks at the user's claim, as CheckClaim does. `pod`: the one that tries
  /// (PodView::output is kOutputTrial); null: there is none. Returns whether it can be
  /// written to; false: that is not known yet, or it cannot, which is noted. Errors: those of the
  /// API; FailedPrecondition for a claim that no pod can mount.
  absl::StatusOr<bool> Check(const JobView& view,
                             const ObservedPod* pod,
                             const NodeTimeouts& timeouts,
                             bool sees_cluster);

  /// Returns WrittenOutputText of the claim that was written to; "": none was.
  [[nodiscard]] const std::string& written() const { return written_; }

  /// Returns when the next attempt is due; nullopt: now, or never.
  [[nodiscard]] std::optional<Clock::TimePoint> Next() const { return attempts_.Next(); }

 private:
  absl::StatusOr<bool> Try(const JobView& view,
                           const ObservedPod* pod,
                           const NodeTimeouts& timeouts);
  absl::StatusOr<bool> Conclude(const ObservedPod& pod);

  JobWriter& writer_;
  const PodSettings& pods_;
  OutputAttempts attempts_;
  std::string written_;
};

}  // namespace adamant::kube
