#include "operator/kube/resources/output_trial.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube/pods/objects/export_pod.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube/volumes/output_claim.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {

void OutputTrial::Begin(std::string written) {
  attempts_.Clear();
  written_ = std::move(written);
}

absl::StatusOr<bool> OutputTrial::Check(const JobView& view,
                                        const ObservedPod* pod,
                                        const NodeTimeouts& timeouts,
                                        bool sees_cluster) {
  const JobIdentity& job = writer_.job();
  const std::string name = OutputClaimName(job.key.name, *view.job);
  const absl::StatusOr<std::string> uid =
      CheckClaim(writer_.client(), {job.key.ns, name}, sees_cluster);
  writer_.Note("mount claim " + name, uid.status());
  ADAMANT_RETURN_IF_ERROR(uid.status());
  const std::string written = WrittenOutputText(view, *uid);
  if (written_ != written) {
    ADAMANT_ASSIGN_OR_RETURN(const bool writable, Try(view, pod, timeouts));
    if (!writable) {
      writer_.Note("write to claim " + name, attempts_.why());
      return false;
    }
    written_ = written;
  }
  return true;
}

// What has failed is tried again as an export is.
absl::StatusOr<bool> OutputTrial::Try(const JobView& view,
                                      const ObservedPod* pod,
                                      const NodeTimeouts& timeouts) {
  if (pod == nullptr) {
    const absl::Status made =
        writer_.CreateOnce(kPods, OutputTrialObject(writer_.job(), *view.job, pods_)).status();
    writer_.Note("create pod export-check", made);
    ADAMANT_RETURN_IF_ERROR(made);
    return false;
  }
  if (pod->state != ObservedPod::State::kPending && pod->state != ObservedPod::State::kRunning) {
    return Conclude(*pod);
  }
  if (const absl::Status waits = attempts_.CheckStarted(*pod); !waits.ok()) {
    attempts_.set_why(waits);
  }
  if (IsToBeForced(*pod, timeouts)) {
    ADAMANT_RETURN_IF_ERROR(
        writer_.RemovePod({.name = pod->name, .uid = pod->uid, .at_once = true}).status());
  }
  return false;
}

absl::StatusOr<bool> OutputTrial::Conclude(const ObservedPod& pod) {
  const DeletePod removal{.name = pod.name, .uid = pod.uid};
  attempts_.OnEnded();
  if (pod.exit_code == 0) {
    ADAMANT_RETURN_IF_ERROR(writer_.RemovePod(removal).status());
    attempts_.Clear();
    return true;
  }
  if (!attempts_.HasFailed(pod)) {
    attempts_.OnFailed(pod);
  } else if (attempts_.IsDue() && !pod.deleting) {
    ADAMANT_RETURN_IF_ERROR(writer_.RemovePod(removal).status());
  }
  return false;
}

}  // namespace adamant::kube
