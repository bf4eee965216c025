#include "operator/kube/job/job_reconcilers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/api/job_event.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube/status/status_writer.h"
#include "operator/kube_client/base/time.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

bool HasEnded(const v1::TrainingJobStatus& status) { return status.has_completion_time(); }

// Whether there is a pod that is not to outlive the job, and has not ended.
bool RunsOn(const v1::TrainingJob& job, const PodViews& pods) {
  return job.spec().run_policy().clean_up_policy().pods() != v1::CleanUpPolicy::PODS_NONE &&
         std::ranges::any_of(
             pods, [](const auto& pod) { return pod->pod.state != ObservedPod::State::kEnded; });
}

// Whether the last leader of a job that has ended may have left something to be done.
bool MayBeUnclean(const v1::TrainingJob& job, const PodViews& pods) {
  const v1::CleanUpPolicy& policy = job.spec().run_policy().clean_up_policy();
  return policy.claims() == v1::CleanUpPolicy::CLAIMS_DELETE || RunsOn(job, pods) ||
         (policy.pods() == v1::CleanUpPolicy::PODS_ALL && !pods.empty());
}

}  // namespace

JobReconcilers::JobReconcilers(const ReconcilerContext& context,
                               std::function<void(const std::string& key)> wake)
    : context_(context), wake_(std::move(wake)) {}

absl::StatusOr<Clock::TimePoint> JobReconcilers::Work(const std::shared_ptr<const JobView>& view,
                                                      const JobObjects& seen) {
  absl::StatusOr<Clock::TimePoint> next = WorkOn(view, seen);
  if (absl::IsAborted(next.status())) {
    LogWarning("another controller leads",
               {{"job", ToString(view->key)}, {"why", next.status().ToString()}});
    Drop(view->key);
  }
  return next;
}

absl::StatusOr<Clock::TimePoint> JobReconcilers::WorkOn(const std::shared_ptr<const JobView>& view,
                                                        const JobObjects& seen) {
  const auto reconciler = ReconcilerOf(view, seen.pods);
  if (reconciler == nullptr) {
    if (view->job == nullptr) {
      ADAMANT_RETURN_IF_ERROR(RejectInvalid(*view));
      return Clock::TimePoint::max();
    }
    return Expire(*view);
  }
  auto next = reconciler->Work(view, seen);
  if (reconciler->done() && HasEnded(*view->status)) {
    Finish(*view);
    return Expire(*view);
  }
  return next;
}

std::shared_ptr<JobReconciler> JobReconcilers::ReconcilerOf(
    const std::shared_ptr<const JobView>& view, const PodViews& pods) {
  const std::string key = ToString(view->key);
  std::shared_ptr<JobReconciler> old;
  const MutexLock lock(mutex_);
  auto& reconciler = reconcilers_[key];
  if (reconciler != nullptr && reconciler->uid() != view->uid) {
    old = std::exchange(reconciler, nullptr);
  }
  if (reconciler == nullptr) {
    if (!NeedsReconciler(*view, pods)) {
      reconcilers_.erase(key);
      return nullptr;
    }
    reconciler =
        std::make_shared<JobReconciler>(context_, view, [wake = wake_, key] { wake(key); });
  }
  return reconciler;
}

bool JobReconcilers::NeedsReconciler(const JobView& view, const PodViews& pods) const {
  if (view.job == nullptr || !HasEnded(*view.status)) {
    return view.job != nullptr;
  }
  const auto finished = finished_.find(ToString(view.key));
  const Finished now{.uid = view.uid, .generation = view.generation};
  // The API may carry out late what was asked of it before the job had ended.
  return finished != finished_.end() && finished->second == now ? RunsOn(*view.job, pods)
                                                                : MayBeUnclean(*view.job, pods);
}

void JobReconcilers::Finish(const JobView& view) {
  Drop(view.key);
  const MutexLock lock(mutex_);
  finished_[ToString(view.key)] = {.uid = view.uid, .generation = view.generation};
}

void JobReconcilers::Drop(const ObjectKey& key) {
  std::shared_ptr<JobReconciler> reconciler;
  {
    const MutexLock lock(mutex_);
    finished_.erase(ToString(key));
    failed_.erase(ToString(key));
    if (const auto found = reconcilers_.find(ToString(key)); found != reconcilers_.end()) {
      reconciler = std::move(found->second);
      reconcilers_.erase(found);
    }
  }
  if (context_.observer != nullptr) {
    context_.observer->OnGone(key);
  }
}

// Deletes a job that has ended when its time is over.
absl::StatusOr<Clock::TimePoint> JobReconcilers::Expire(const JobView& view) {
  if (view.job == nullptr || !HasEnded(*view.status) ||
      !view.job->spec().run_policy().has_ttl_after_finished()) {
    return Clock::TimePoint::max();
  }
  const v1::RunPolicy& policy = view.job->spec().run_policy();
  ADAMANT_ASSIGN_OR_RETURN(const WallTime ended, ParseTime(view.status->completion_time()));
  const auto left = ended + std::chrono::seconds(policy.ttl_after_finished().seconds()) +
                    std::chrono::nanoseconds(policy.ttl_after_finished().nanos()) -
                    context_.clock.WallNow();
  if (left > Clock::Duration::zero()) {
    return context_.clock.Now() + std::chrono::duration_cast<Clock::Duration>(left);
  }
  LogInfo("deletes a job whose time after its end is over", {{"job", ToString(view.key)}});
  absl::Status deleted = context_.client.Delete(kTrainingJobs, view.key, {.uid = view.uid});
  if (absl::IsNotFound(deleted) || absl::IsAborted(deleted)) {  // gone, or another of that name
    deleted = absl::OkStatus();
  }
  NoteWrite(view, "delete the job, whose time after its end is over", deleted);
  ADAMANT_RETURN_IF_ERROR(deleted);
  return Clock::TimePoint::max();
}

// Such a job has nobody else who tells of it, and a status that cannot be written tells nothing.
void JobReconcilers::NoteWrite(const JobView& view,
                               const std::string& what,
                               const absl::Status& status) {
  std::vector<FailedWrites::Failure> news;
  {
    const MutexLock lock(mutex_);
    FailedWrites& failed = failed_[ToString(view.key)];
    failed.Note(what, status, context_.clock);
    news = failed.Lasting(context_.clock.Now());
    std::erase_if(news, [&failed](const auto& failure) { return !failed.IsNews(failure); });
    if (status.ok()) {
      failed_.erase(ToString(view.key));
    }
  }
  const JobIdentity job{.key = view.key, .uid = view.uid};
  for (const FailedWrites::Failure& failure : news) {
    context_.events.Record(EventOf(job, true, failure.Reason(), failure.Text()));
  }
}

absl::Status JobReconcilers::RejectInvalid(const JobView& view) {
  if (view.status->observed_generation() == view.generation) {
    return absl::OkStatus();
  }
  const JobIdentity job{.key = view.key, .uid = view.uid};
  StatusWriter writer(context_.client, job);
  writer.StartFrom(view.resource_version);
  const auto changed = [] { return absl::AbortedError("the job has changed, and comes again"); };
  const absl::Status written =
      writer.Write(InvalidStatus(view, FormatTime(context_.clock.WallNow())), changed);
  if (const auto refusal = writer.TakeRefusal()) {
    context_.events.Record(EventOf(job, true, kStatusRefused, RefusedStatusText(*refusal)));
  }
  const absl::Status status = absl::IsAborted(written) ? absl::OkStatus() : written;
  NoteWrite(view, "update the status", status);
  return status;
}

}  // namespace adamant::kube
