#include "operator/cli/kubectl/output/output_pod.h"

#include <nlohmann/json.hpp>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube/pods/objects/hardened_pod.h"
#include "operator/kube_client/api/resource.h"

namespace adamant::kubectl {
namespace {

using kube::Json;
using kube::StringAt;

constexpr char kFolder[] = "/output";
constexpr int kLongestSeconds = 24 * 3600;

// Not managed by the operator, which therefore does not see it.
Json Metadata(const Json& job, const std::string& name) {
  const kube::ObjectKey key = kube::KeyOf(job);
  return {{"name", name},
          {"namespace", key.ns},
          {"labels",
           {{"app.kubernetes.io/name", "adamant"},
            {"app.kubernetes.io/managed-by", "kubectl-adamant"},
            {kube::kJobLabel, key.name}}},
          {"ownerReferences",
           Json::array({{{"apiVersion", kube::kTrainingJobs.api_version()},
                         {"kind", kube::kTrainingJobs.kind},
                         {"name", key.name},
                         {"uid", kube::UidOf(job)}}})}};
}

}  // namespace

Json OutputPodObject(const Json& job, const OutputPod& pod) {
  const std::string path = StringAt(job, {"spec", "output", "path"});
  Json arguments = {"serve-output",
                    "--listen=$(POD_IP):" + std::to_string(kOutputPort),
                    "--key=" + pod.key,
                    std::string("--folder=") + kFolder + (path.empty() ? "" : "/" + path)};
  for (const std::string& file : pod.files) {
    arguments.push_back("--file=" + file);
  }
  const Json container = {
      {"name", "adamant"},
      {"image", pod.image.name},
      {"command", Json::array({"adamant"})},
      {"args", arguments},
      {"env",
       Json::array(
           {{{"name", "POD_IP"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}}})},
      {"ports", Json::array({{{"name", "output"}, {"containerPort", kOutputPort}}})},
      {"resources",
       {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}, {"limits", {{"memory", "256Mi"}}}}},
      {"volumeMounts",
       Json::array({{{"name", "output"}, {"mountPath", kFolder}, {"readOnly", true}}})},
      {"securityContext", kube::HardenedContainer()}};
  Json object = kube::HardenedPod(Metadata(job, pod.name), container);
  AddPullSecrets(pod.image, object);
  object["spec"]["activeDeadlineSeconds"] = kLongestSeconds;
  object["spec"]["terminationGracePeriodSeconds"] = 0;
  object["spec"]["volumes"] = Json::array(
      {{{"name", "output"},
        {"persistentVolumeClaim",
         {{"claimName", StringAt(job, {"status", "outputClaim"})}, {"readOnly", true}}}}});
  return object;
}

}  // namespace adamant::kubectl
