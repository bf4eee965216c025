#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/job/job_body.h"
#include "operator/kube/job/job_body_inbox.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube/volumes/data_claims.h"
#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/status_macros.h"

// How a job's controller comes to be: out of what is stored, or anew.
namespace adamant::kube {

using controller::JobController;
using controller::Phase;

absl::Status JobBody::Open() {
  ADAMANT_ASSIGN_OR_RETURN(const controller::StateStore::Snapshot stored, store_.Load());
  version_ = stored.version;
  Take(view_);  // once more: what is stored says of which day its defaults are
  std::unique_ptr<JobController> controller;
  if (const auto state = stored.entries.find(controller::kStateKey);
      state != stored.entries.end()) {
    ADAMANT_ASSIGN_OR_RETURN(controller, JobController::Restore(Settings(), state->second));
  } else if (view_->status->has_completion_time()) {
    return absl::DataLossError("the job has ended, and its state was deleted");
  } else {
    ADAMANT_RETURN_IF_ERROR(CheckExists());
    controller = JobController::Create(Settings(), context_.new_id());
  }
  ADAMANT_ASSIGN_OR_RETURN(const PodViews there, ReadPods());
  restarts_.StartFrom(*view_->status, controller->state().restarts);
  controller_ = std::move(controller);  // not before: it has no term of its own until it begins
  ServeJob();
  return Begin(there);
}

// The cache may still show a job that is deleted, and with it what was stored: it must not begin
// anew.
absl::Status JobBody::CheckExists() const {
  const auto object = client_.Get(kTrainingJobs, job_.key);
  if (absl::IsNotFound(object.status()) || (object.ok() && UidOf(*object) != job_.uid)) {
    return absl::UnavailableError(ToString(job_.key) + " was deleted");
  }
  return object.status();
}

// The cache may lack what the last leader has made, and others in its place would only disturb it.
absl::StatusOr<PodViews> JobBody::ReadPods() const {
  ADAMANT_ASSIGN_OR_RETURN(
      const std::vector<Json> objects,
      client_.List(kPods, {.ns = job_.key.ns, .label_selector = kJobUidLabel + ("=" + job_.uid)}));
  PodViews pods;
  for (const Json& object : objects) {
    if (auto pod = ParsePod(object)) {
      pods.push_back(std::move(pod));
    }
  }
  return pods;
}

// Without what it knew nobody can go on, and to begin anew would throw away what was trained.
absl::Status JobBody::EndLost(const absl::Status& why, const PodViews& pods) {
  lost_ = why;
  absl::Status status;
  failed_writes_.BeginPass();
  for (const auto& pod : pods) {
    if (pod->pod.state != ObservedPod::State::kEnded && !pod->pod.deleting) {
      status.Update(RemovePod({.name = pod->pod.name, .uid = pod->pod.uid}));
    }
  }
  failed_writes_.EndPass(true);
  v1::TrainingJobStatus told =
      view_->status->has_completion_time()  // then what became of it is told
          ? *view_->status
          : LostStatus(*view_, std::string(why.message()), Now());
  TellFailures(told);
  if (told.SerializeAsString() != view_->status->SerializeAsString()) {
    status.Update(WriteStatus(told));
  }
  done_ = status.ok() && AllEnded(pods);
  return status;
}

absl::Status JobBody::Begin(const PodViews& pods) {
  const Phase phase = controller_->state().phase;
  JobController::Survivors survivors;
  survivors.resumes = phase == Phase::kSuspended && !view_->job->spec().run_policy().suspend();
  for (const auto& pod : pods) {
    if (pod->export_snapshot == 0 && !controller::IsFinal(phase)) {
      survivors.running.push_back(pod->pod.process);  // that of one that has ended is counted yet
      pod_memory_.OnMade(pod->pod.process, pod->pod.uid, context_.clock.Now());
    }
  }
  finished_ = false;
  templates_checked_ = false;  // a suspended job can be changed, and its claims deleted
  output_checked_ = false;
  export_ = 0;
  failed_export_ = {};
  failed_trial_ = {};
  output_written_ = WrittenOutputText(*view_->status);
  zones_.clear();
  Perform(controller_->Begin(context_.clock.Now(), survivors));
  return taken_over_;
}

// An API that answers is asked again soon, and the user is told what it says; one that does not is
// left alone for longer and longer.
absl::StatusOr<Clock::TimePoint> JobBody::WaitToOpen(const absl::Status& why) {
  NoteWrite("read the job's state", why);
  TellTrouble(why);
  if (!IsAnswer(why)) {
    return why;
  }
  v1::TrainingJobStatus told = WaitingStatus(*view_, Now());
  told.set_last_report_time(Now());
  TellFailures(told);
  if (!failed_writes_.Lasting(context_.clock.Now()).empty()) {
    WriteStatus(told).IgnoreError();  // it is tried again, with all the rest
  }
  const Clock::TimePoint again = context_.clock.Now() + retry_;
  retry_ = std::min(2 * retry_, kLastRetry);
  return again;
}

}  // namespace adamant::kube
