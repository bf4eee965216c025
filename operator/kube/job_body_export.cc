#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/kube/claim_object.h"
#include "operator/kube/client/json.h"
#include "operator/kube/custom_resources.h"
#include "operator/kube/job_body.h"
#include "operator/kube/output_claim.h"
#include "operator/kube/schema/message_json.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"

// How a job's model comes to its output volume.
namespace adamant::kube {

using controller::ObservedPod;

absl::Status JobBody::MakeExport(const PodViews& pods) {
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
  if (pod.state == ObservedPod::State::kEnded) {
    return FinishExport(**found);
  }
  return IsToBeForced(pod, Patience())
             ? RemovePod({.name = pod.name, .uid = pod.uid, .at_once = true})
             : absl::OkStatus();
}

// A claim of the user's is waited for; another is made at once, so that what the API has against it
// is known.
absl::Status JobBody::CheckOutput() {
  const Json own = OutputClaimObject(job_, *view_->job);
  if (own.is_null()) {
    return CheckClaim(client_, {job_.key.ns, view_->job->spec().output().claim()});
  }
  const absl::Status created = CreateClaim(own);
  return created.ok() ? created : Refused("the claim of spec.output", created);
}

absl::Status JobBody::FinishExport(const PodView& view) {
  absl::Status outcome;
  if (view.pod.exit_code != 0) {
    outcome = absl::UnavailableError("the pod " + view.pod.name + " " + view.pod.how);
    const absl::Status removed = RemovePod({.name = view.pod.name, .uid = view.pod.uid});
    if (!removed.ok()) {
      return removed;
    }
  }
  Handle(controller::Exported{.snapshot = std::exchange(export_, 0), .status = outcome});
  return absl::OkStatus();
}

absl::Status JobBody::StartExport() {
  ADAMANT_RETURN_IF_ERROR(CreateClaim(OutputClaimObject(job_, *view_->job)));
  const std::string name = ExportName(job_.key.name, export_);
  Json source = {{"metadata", MetadataOf(job_, name)}, {"data", ExportSource()}};
  source["metadata"]["annotations"] = {{kImageAnnotation, context_.pods.image}};
  ADAMANT_RETURN_IF_ERROR(
      client_.Apply(kConfigMaps, std::move(source), {.field_manager = kFieldManager, .force = true})
          .status());
  std::string unused;
  const ModelToExport model{.snapshot = export_, .epochs = controller_->state().epoch};
  return CreateOnce(kPods, ExportPodObject(job_, *view_->job, model, context_.pods), unused);
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
