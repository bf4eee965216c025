#include "operator/kube/pods/objects/pod_object.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube/network/pod_ports.h"
#include "operator/kube/pods/objects/hardened_pod.h"
#include "operator/kube/pods/objects/pod_requests.h"
#include "operator/kube/pods/objects/strategic_merge.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube/schema/message_json.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube/volumes/data_claims.h"
#include "operator/kube/volumes/pod_security.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {
namespace {

using controller::Role;
using controller::StartProcess;

constexpr char kOwnLabels[] = "adamant.dev/";

std::string OnPodAddress(int port) { return "$(POD_IP):" + std::to_string(port); }

Json Port(const char* name, int port) { return {{"name", name}, {"containerPort", port}}; }

Json FieldVariable(const char* name, const char* path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

Json Arguments(const JobIdentity& job, const StartProcess& process, const PodSettings& settings) {
  const bool is_plain = !settings.security.has_value();
  Json arguments = {
      "--controller=" + (is_plain ? settings.control_service : settings.security->control_service),
      "--job=" + job.uid,
      "--slot=" + std::to_string(process.id.slot),
      "--generation=" + std::to_string(process.generation),
      std::string("--data-dir=") + kDataFolder + "/adamant",
      "--metrics-listen=" + OnPodAddress(kMetricsPort),
      "--listen=" + OnPodAddress(kServicePort)};
  if (process.id.role == Role::kParameterServer) {
    arguments.push_back("--replication-listen=" + OnPodAddress(kReplicationPort));
    arguments.push_back("--node=$(NODE_NAME)");
  }
  return arguments;
}

Json Container(const JobIdentity& job, const StartProcess& process, const PodSettings& settings) {
  Json ports = Json::array({Port("metrics", kMetricsPort)});
  if (process.id.role != Role::kWorker) {
    ports.push_back(Port("service", kServicePort));
  }
  if (process.id.role == Role::kParameterServer) {
    ports.push_back(Port("replication", kReplicationPort));
  }
  return {
      {"name", kContainer},
      {"image", settings.image.name},
      {"command", Json::array({"adamant-" + std::string(controller::RoleName(process.id.role))})},
      {"args", Arguments(job, process, settings)},
      {"env",
       Json::array({FieldVariable("POD_IP", "status.podIP"),
                    FieldVariable("NODE_NAME", "spec.nodeName"),
                    FieldVariable("ADAMANT_POD_UID", "metadata.uid")})},  // images may be older
      {"ports", ports},
      {"volumeMounts",
       Json::array({{{"name", "data"}, {"mountPath", kDataFolder}},
                    {{"name", "tmp"}, {"mountPath", "/tmp"}}})},
      {"securityContext", HardenedContainer()}};
}

Json Volumes(const JobIdentity& job, const StartProcess& process, std::uint64_t volume) {
  Json data = {{"name", "data"}};
  if (process.id.role == Role::kParameterServer) {
    data["persistentVolumeClaim"] = {
        {"claimName", ClaimName(job.key.name, process.id.slot, volume)}};
  } else {
    data["emptyDir"] = Json::object();
  }
  return Json::array({data, {{"name", "tmp"}, {"emptyDir", Json::object()}}});
}

// Pods of a role keep away from each other where they can, from node and zone.
Json Affinity(const JobIdentity& job, Role role) {
  const Json others = {
      {"matchLabels", {{kJobUidLabel, job.uid}, {kRoleLabel, controller::RoleName(role)}}}};
  Json terms = Json::array();
  for (const auto& [weight, key] :
       {std::pair(100, "kubernetes.io/hostname"), std::pair(50, "topology.kubernetes.io/zone")}) {
    terms.push_back({{"weight", weight},
                     {"podAffinityTerm", {{"topologyKey", key}, {"labelSelector", others}}}});
  }
  return {{"podAntiAffinity", {{"preferredDuringSchedulingIgnoredDuringExecution", terms}}}};
}

const v1::PodTemplate& TemplateOf(const v1::TrainingJob& spec, Role role) {
  const v1::Pods& pods = spec.spec().pods();
  switch (role) {
    case Role::kWorker:
      return pods.worker();
    case Role::kDataServer:
      return pods.data_server();
    case Role::kParameterServer:
      return pods.parameter_server();
  }
  return pods.worker();
}

void MergeTemplate(const v1::PodTemplate& overlay, Json& pod) {
  for (const auto& [name, value] : overlay.metadata().labels()) {
    if (!name.starts_with(kOwnLabels)) {
      pod["metadata"]["labels"].emplace(name, value);
    }
  }
  for (const auto& [name, value] : overlay.metadata().annotations()) {
    pod["metadata"]["annotations"].emplace(name, value);
  }
  const Json merged = MessageJson(overlay);
  if (const Json* spec = Find(merged, {"spec"})) {
    StrategicMerge(pod["spec"], *spec);
  }
  pod["spec"]["restartPolicy"] = "Never";
}

}  // namespace

Json PodObject(const JobIdentity& job,
               const v1::TrainingJob& spec,
               const StartProcess& process,
               std::uint64_t volume,
               const PodSettings& settings,
               const PodGroup& group) {
  Json pod = HardenedPod(MetadataOf(job, PodName(job.key.name, process)),
                         Container(job, process, settings));
  pod["spec"]["affinity"] = Affinity(job, process.id.role);
  pod["spec"]["volumes"] = Volumes(job, process, volume);
  Json& labels = pod["metadata"]["labels"];
  labels[kRoleLabel] = controller::RoleName(process.id.role);
  labels[kSlotLabel] = std::to_string(process.id.slot);
  labels[kGenerationLabel] = std::to_string(process.generation);
  if (process.id.role == Role::kDataServer) {
    MountData(spec, pod);
  }
  if (settings.security) {
    AddSecurity(*settings.security, pod);
  }
  AddGang(group, process.id, spec.spec(), pod);
  AddPullSecrets(settings.image, pod);
  MergeTemplate(TemplateOf(spec, process.id.role), pod);
  AddPullPolicy(settings.image, pod);
  AddRequests(spec, process.id.role, pod);
  return pod;
}

}  // namespace adamant::kube
