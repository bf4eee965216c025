#include "operator/kube/resources/model_export.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube/api/orphans.h"
#include "operator/kube/pods/objects/export_pod.h"
#include "operator/kube/schema/message_json.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {

void ModelExport::Reset() {
  snapshot_ = 0;
  attempts_.Clear();
}

ModelExport::Result ModelExport::Work(const Source& source,
                                      const ObservedPod* pod,
                                      const NodeTimeouts& timeouts) {
  if (!attempts_.why().ok()) {
    Note(source.spec, attempts_.why());
  }
  if (snapshot_ == 0) {
    return {absl::OkStatus()};
  }
  if (pod == nullptr) {
    const absl::Status started = Start(source);
    writer_.Note("create pod export-" + std::to_string(snapshot_), started);
    return {started};
  }
  if (pod->state == ObservedPod::State::kEnded || pod->state == ObservedPod::State::kGone) {
    return Finish(source.spec, *pod);
  }
  if (const absl::Status waits = attempts_.CheckStarted(*pod); !waits.ok()) {
    Note(source.spec, waits);
  }
  return {IsToBeForced(*pod, timeouts)
              ? writer_.RemovePod({.name = pod->name, .uid = pod->uid, .at_once = true}).status()
              : absl::OkStatus()};
}

void ModelExport::Note(const v1::TrainingJob& spec, const absl::Status& status) {
  writer_.Note("write the model to claim " + OutputClaimName(writer_.job().key.name, spec), status);
}

// The pod of an attempt that has failed stays until the next, for its log. The controller asks for
// that soon, as servers move; what fails again and again is given more and more time.
ModelExport::Result ModelExport::Finish(const v1::TrainingJob& spec, const ObservedPod& pod) {
  attempts_.OnEnded();
  absl::Status outcome;
  if (pod.exit_code == 0) {
    attempts_.Clear();
  } else if (attempts_.HasFailed(pod)) {
    const bool waits = !attempts_.IsDue() || pod.deleting;
    return {waits ? absl::OkStatus()
                  : writer_.RemovePod({.name = pod.name, .uid = pod.uid}).status()};
  } else {
    outcome = absl::UnavailableError("the pod " + pod.name + " " + attempts_.OnFailed(pod));
    Note(spec, attempts_.why());
  }
  return {
      .status = absl::OkStatus(),
      .exported = controller::Exported{.snapshot = std::exchange(snapshot_, 0), .status = outcome}};
}

std::optional<Clock::TimePoint> ModelExport::Next() const {
  return snapshot_ == 0 ? std::nullopt : attempts_.Next();
}

absl::Status ModelExport::Start(const Source& source) {
  const JobIdentity& job = writer_.job();
  ADAMANT_RETURN_IF_ERROR(writer_.CreateClaim(OutputClaimObject(job, source.spec)));
  ADAMANT_RETURN_IF_ERROR(WriteSource(source));
  const ModelToExport model{.snapshot = snapshot_, .epochs = source.state.epoch};
  return writer_.CreateOnce(kPods, ExportPodObject(job, source.spec, model, pods_)).status();
}

// What was written for an attempt before is not true any more: servers have moved since.
absl::Status ModelExport::WriteSource(const Source& source) {
  const JobIdentity& job = writer_.job();
  const std::string name = ExportName(job.key.name, snapshot_);
  Json object = {{"metadata", MetadataOf(job, name)}, {"data", DataOf(source)}};
  object["metadata"]["annotations"] = ImageAnnotations(pods_.image);
  const auto there = writer_.client().Get(kConfigMaps, {job.key.ns, name});
  if (absl::IsNotFound(there.status())) {
    return writer_.CreateOnce(kConfigMaps, std::move(object)).status();
  }
  ADAMANT_RETURN_IF_ERROR(there.status());
  if (!IsOf(*there, job)) {
    return MakeWay(writer_.client(), kConfigMaps, *there, job);
  }
  object["metadata"]["uid"] = UidOf(*there);
  return writer_.client()
      .Patch(kConfigMaps, {job.key.ns, name}, PatchType::kMerge, object)
      .status();
}

Json ModelExport::DataOf(const Source& source) const {
  Json data = {{"jobUid", source.state.job_uid},
               {"snapshot", snapshot_},
               {"accuracy", source.state.accuracy},
               {"servers", source.servers},
               {"primaries", Json::array()}};
  for (const controller::Configuration& bucket : source.state.buckets) {
    data["primaries"].push_back(bucket.primary.slot);
  }
  return {{"job.json", DumpJson(MessageJson(source.spec))}, {"source.json", DumpJson(data)}};
}

}  // namespace adamant::kube
