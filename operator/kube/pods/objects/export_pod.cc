#include "operator/kube/pods/objects/export_pod.h"

#include <nlohmann/json.hpp>

#include "operator/kube/pods/objects/hardened_pod.h"
#include "operator/kube/pods/objects/pod_requests.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube/storage/epoch_objects.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube/volumes/pod_security.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {
namespace {

constexpr char kInputsFolder[] = "/inputs";

// Results that somebody has deleted are no reason not to write the model.
Json ExportSources(const JobIdentity& job, const std::string& name, std::uint64_t epochs) {
  Json sources = Json::array({{{"configMap", {{"name", name}}}}});
  for (std::uint64_t epoch = 1; epoch <= epochs; epoch += kEpochsOfAnObject) {
    sources.push_back(
        {{"configMap", {{"name", EpochsName(job.key.name, epoch)}, {"optional", true}}}});
  }
  return sources;
}

// A pod that runs `adamant save-model` on the output volume.
Json OutputPod(const JobIdentity& job,
               const v1::TrainingJob& spec,
               const std::string& label,
               const std::string& option,
               const PodSettings& settings) {
  const std::string& path = spec.spec().output().path();
  const std::string out = std::string("--out=") + kDataFolder + (path.empty() ? "" : "/" + path);
  const Json container = {{"name", kContainer},
                          {"image", settings.image.name},
                          {"command", Json::array({"adamant"})},
                          {"args", Json::array({"save-model", option, out})},
                          {"volumeMounts",
                           Json::array({{{"name", "data"}, {"mountPath", kDataFolder}},
                                        {{"name", "tmp"}, {"mountPath", "/tmp"}}})},
                          {"terminationMessagePolicy", "FallbackToLogsOnError"},  // for PodView
                          {"securityContext", HardenedContainer()}};
  Json pod = HardenedPod(MetadataOf(job, job.key.name + "-export-" + label), container);
  pod["metadata"]["labels"][kExportLabel] = label;
  pod["spec"]["volumes"] = Json::array(
      {{{"name", "data"},
        {"persistentVolumeClaim", {{"claimName", OutputClaimName(job.key.name, spec)}}}},
       {{"name", "tmp"}, {"emptyDir", Json::object()}}});
  AddPullSecrets(settings.image, pod);
  AddPullPolicy(settings.image, pod);
  AddOutputRequests(pod);
  return pod;
}

}  // namespace

std::string ExportName(const std::string& job, std::uint64_t snapshot) {
  return job + "-export-" + std::to_string(snapshot);
}

Json ExportPodObject(const JobIdentity& job,
                     const v1::TrainingJob& spec,
                     const ModelToExport& model,
                     const PodSettings& settings) {
  const std::string name = ExportName(job.key.name, model.snapshot);
  Json pod = OutputPod(job,
                       spec,
                       std::to_string(model.snapshot),
                       std::string("--inputs=") + kInputsFolder,
                       settings);
  pod["spec"]["volumes"].push_back(
      {{"name", "inputs"}, {"projected", {{"sources", ExportSources(job, name, model.epochs)}}}});
  pod["spec"]["containers"][0]["volumeMounts"].push_back(
      {{"name", "inputs"}, {"mountPath", kInputsFolder}});
  if (settings.security) {
    AddSecurity(*settings.security, pod);
  }
  return pod;
}

Json OutputTrialObject(const JobIdentity& job,
                       const v1::TrainingJob& spec,
                       const PodSettings& settings) {
  return OutputPod(job, spec, kExportOfTrial, "--check", settings);
}

}  // namespace adamant::kube
