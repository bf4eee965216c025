#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/kube/job/job_body.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube/volumes/output_claim.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/status_macros.h"

// Whether a job's model will find its way out, asked before anything is trained.
namespace adamant::kube {

// A claim of the user's is waited for, and tried; another is made at once, so that what the API has
// against it is known.
absl::StatusOr<bool> JobBody::CheckOutput(const PodViews& pods) {
  const std::string name = OutputClaimName(job_.key.name, *view_->job);
  const Json own = OutputClaimObject(job_, *view_->job);
  if (!own.is_null()) {
    const absl::Status made = CreateClaim(own);
    const absl::Status checked = made.ok() ? made : Refused("the claim of spec.output", made);
    NoteWrite("create claim " + name, checked);
    ADAMANT_RETURN_IF_ERROR(checked);
    return true;
  }
  const absl::StatusOr<std::string> uid = CheckClaim(client_, {job_.key.ns, name});
  NoteWrite("mount claim " + name, uid.status());
  ADAMANT_RETURN_IF_ERROR(uid.status());
  const std::string written = WrittenOutputText(*view_, *uid);
  if (output_written_ != written) {
    ADAMANT_ASSIGN_OR_RETURN(const bool writable, TryOutput(pods));
    if (!writable) {
      NoteWrite("write to claim " + name, failed_trial_.why);
      return false;
    }
    output_written_ = written;
  }
  return true;
}

// By a pod that makes the folder and writes to it; what has failed is tried again as an export is.
// False: it is not known yet, or failed_trial_ says why it cannot be done.
absl::StatusOr<bool> JobBody::TryOutput(const PodViews& pods) {
  const auto found =
      std::ranges::find(pods, kOutputTrial, [](const auto& pod) { return pod->export_snapshot; });
  if (found == pods.end()) {
    std::string unused;
    const absl::Status made =
        CreateOnce(kPods, OutputTrialObject(job_, *view_->job, context_.pods), unused);
    NoteWrite("create pod export-check", made);
    ADAMANT_RETURN_IF_ERROR(made);
    return false;
  }
  const ObservedPod pod = ObserveOne(**found);
  const DeletePod removal{.name = pod.name, .uid = pod.uid};
  if (pod.state == ObservedPod::State::kPending || pod.state == ObservedPod::State::kRunning) {
    if (const absl::Status waits = WaitOfExport(pod); !waits.ok()) {
      failed_trial_.why = waits;
    }
    if (IsToBeForced(pod, Patience())) {
      ADAMANT_RETURN_IF_ERROR(RemovePod({.name = pod.name, .uid = pod.uid, .at_once = true}));
    }
    return false;
  }
  export_waits_since_.reset();
  if (pod.exit_code == 0) {
    ADAMANT_RETURN_IF_ERROR(RemovePod(removal));
    failed_trial_ = {};
    return true;
  }
  if (failed_trial_.pod_uid != pod.uid) {
    NoteFailed(pod, failed_trial_);
  } else if (context_.clock.Now() >= failed_trial_.again && !pod.deleting) {
    ADAMANT_RETURN_IF_ERROR(RemovePod(removal));
  }
  return false;
}

}  // namespace adamant::kube
