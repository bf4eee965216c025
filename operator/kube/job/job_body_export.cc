#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/api/orphans.h"
#include "operator/kube/job/job_body.h"
#include "operator/kube/schema/message_json.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"

// How a job's model comes to its output volume.
namespace adamant::kube {

absl::Status JobBody::MakeExport(const PodViews& pods) {
  if (finished_) {
    return EndExports(pods);
  }
  if (!failed_export_.why.ok()) {
    NoteExport(failed_export_.why);
  }
  if (export_ == 0) {
    return absl::OkStatus();
  }
  const auto found =
      std::ranges::find(pods, export_, [](const std::shared_ptr<const PodView>& pod) {
        return pod->export_snapshot;
      });
  if (found == pods.end()) {
    const absl::Status started = StartExport();
    NoteWrite("create pod export-" + std::to_string(export_), started);
    return started;
  }
  const ObservedPod pod = ObserveOne(**found);
  if (pod.state == ObservedPod::State::kEnded || pod.state == ObservedPod::State::kGone) {
    return FinishExport(pod);
  }
  if (const absl::Status waits = WaitOfExport(pod); !waits.ok()) {
    NoteExport(waits);
  }
  return IsToBeForced(pod, Patience())
             ? RemovePod({.name = pod.name, .uid = pod.uid, .at_once = true})
             : absl::OkStatus();
}

// A job that ends, or is suspended, while its model is written does not wait for that.
absl::Status JobBody::EndExports(const PodViews& pods) {
  absl::Status status;
  for (const auto& view : pods) {
    const bool lives = view->pod.state == ObservedPod::State::kPending ||
                       view->pod.state == ObservedPod::State::kRunning;
    if (view->export_snapshot != 0 && lives && !view->pod.deleting && !LeavesPods()) {
      status.Update(RemovePod({.name = view->pod.name, .uid = view->pod.uid}));
    }
  }
  return status;
}

void JobBody::NoteExport(const absl::Status& status) {
  NoteWrite("write the model to claim " + OutputClaimName(job_.key.name, *view_->job), status);
}

// FailedPrecondition: it waits for too long; a pod may get no node, and a node may not mount the
// claim.
absl::Status JobBody::WaitOfExport(const ObservedPod& pod) {
  const Clock::TimePoint now = context_.clock.Now();
  if (pod.state != ObservedPod::State::kPending) {
    export_waits_since_.reset();
  } else if (!export_waits_since_) {
    export_waits_since_ = now;
  } else if (now - *export_waits_since_ >= kExportPatience) {
    return absl::FailedPreconditionError("its pod " + pod.name + " has not started for " +
                                         std::to_string(kExportPatience.count()) +
                                         " s; `kubectl adamant explain` says why");
  }
  return absl::OkStatus();
}

// Another attempt follows, later and later.
std::string JobBody::NoteFailed(const ObservedPod& pod, FailedAttempt& attempt) const {
  std::string how = pod.how.empty() ? "is gone with its node" : pod.how;
  attempt.pod_uid = pod.uid;
  attempt.why = absl::FailedPreconditionError("its pod " + pod.name + " " + how);
  attempt.wait =
      std::clamp(2 * attempt.wait, kFirstExportWait, std::chrono::milliseconds(kLastExportWait));
  attempt.again = context_.clock.Now() + attempt.wait;
  return how;
}

// The pod of an attempt that has failed stays until the next, for its log. The controller asks for
// that soon, as servers move; what fails again and again is given more and more time.
absl::Status JobBody::FinishExport(const ObservedPod& pod) {
  export_waits_since_.reset();
  const Clock::TimePoint now = context_.clock.Now();
  absl::Status outcome;
  if (pod.exit_code == 0) {
    failed_export_ = {};
  } else if (failed_export_.pod_uid == pod.uid) {
    const bool waits = now < failed_export_.again || pod.deleting;
    return waits ? absl::OkStatus() : RemovePod({.name = pod.name, .uid = pod.uid});
  } else {
    outcome = absl::UnavailableError("the pod " + pod.name + " " + NoteFailed(pod, failed_export_));
    NoteExport(failed_export_.why);
  }
  Handle(controller::Exported{.snapshot = std::exchange(export_, 0), .status = outcome});
  return absl::OkStatus();
}

// When the next attempt is due.
std::optional<Clock::TimePoint> JobBody::NextExport() const {
  const Clock::TimePoint now = context_.clock.Now();
  if (export_ != 0 && now < failed_export_.again) {
    return failed_export_.again;
  }
  return now < failed_trial_.again ? std::optional(failed_trial_.again) : std::nullopt;
}

absl::Status JobBody::StartExport() {
  ADAMANT_RETURN_IF_ERROR(CreateClaim(OutputClaimObject(job_, *view_->job)));
  ADAMANT_RETURN_IF_ERROR(WriteExportSource());
  std::string unused;
  const ModelToExport model{.snapshot = export_, .epochs = controller_->state().epoch};
  return CreateOnce(kPods, ExportPodObject(job_, *view_->job, model, context_.pods), unused);
}

// What was written for an attempt before is not true any more: servers have moved since.
absl::Status JobBody::WriteExportSource() {
  const std::string name = ExportName(job_.key.name, export_);
  Json source = {{"metadata", MetadataOf(job_, name)}, {"data", ExportSource()}};
  source["metadata"]["annotations"] = {{kImageAnnotation, context_.pods.image}};
  const auto there = client_.Get(kConfigMaps, {job_.key.ns, name});
  if (absl::IsNotFound(there.status())) {
    std::string unused;
    return CreateOnce(kConfigMaps, std::move(source), unused);
  }
  ADAMANT_RETURN_IF_ERROR(there.status());
  if (!IsOf(*there, job_)) {
    return MakeWay(client_, kConfigMaps, *there, job_);
  }
  source["metadata"]["uid"] = UidOf(*there);
  return client_.Patch(kConfigMaps, {job_.key.ns, name}, PatchType::kMerge, source).status();
}

Json JobBody::ExportSource() const {
  const controller::JobState& state = controller_->state();
  Json source = {{"jobUid", state.job_uid},
                 {"snapshot", export_},
                 {"accuracy", state.accuracy},
                 {"servers", Json::array()},
                 {"primaries", Json::array()}};
  const int servers = view_->job->spec().distribution().parameter_servers().count();
  for (int slot = 0; slot < servers; ++slot) {
    source["servers"].push_back(controller_->AddressOf(
        {controller::Role::kParameterServer, static_cast<std::uint32_t>(slot)}));
  }
  for (const controller::Bucket& bucket : state.buckets) {
    source["primaries"].push_back(bucket.primary.slot);
  }
  return {{"job.json", DumpJson(MessageJson(*view_->job))}, {"source.json", DumpJson(source)}};
}

}  // namespace adamant::kube
