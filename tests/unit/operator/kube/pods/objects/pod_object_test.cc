#include "operator/kube/pods/objects/pod_object.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/pods/objects/export_pod.h"
#include "operator/kube/pods/objects/pod_settings.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/yaml/scalars.h"
#include "tests/unit/operator/kube/job/job_fixture.h"

namespace adamant::kube {
namespace {

using controller::Role;
using controller::StartProcess;
using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;

const StartProcess kWorker{{Role::kWorker, 1}, 3};
const StartProcess kDataServer{{Role::kDataServer, 0}, 1};
const StartProcess kParameterServer{{Role::kParameterServer, 2}, 5};

Json PodOf(const StartProcess& process, const Json& spec = Json::object()) {
  return PodObject(kJob, *ReadTestJob(spec), process, 1, kPodSettings);
}

Json WorkerWith(const Json& overlay) { return PodOf(kWorker, {{"pods", {{"worker", overlay}}}}); }

std::vector<std::string> ArgumentsOf(const Json& pod) {
  return pod["spec"]["containers"][0]["args"].get<std::vector<std::string>>();
}

std::vector<std::string> NamesIn(const Json& list) {
  std::vector<std::string> names;
  for (const Json& element : list) {
    names.push_back(element["name"]);
  }
  return names;
}

TEST(PodObjectTest, NamesSayJobSlotAndGeneration) {
  EXPECT_EQ(PodName("mnist", kWorker), "mnist-worker-1-3");
  EXPECT_EQ(ClaimName("mnist", 2, 3), "mnist-parameter-server-2-3");
  EXPECT_EQ(ExportName("mnist", 7), "mnist-export-7");
}

PodSettings SettingsWithTls() {
  PodSettings settings = kPodSettings;
  settings.security = PodSecurity{.control_service = "operators.adamant:7072",
                                  .certificates = "operators.adamant:7071",
                                  .trust_domain = "adamant.local",
                                  .roots = [] { return "the roots"; }};
  return settings;
}

void ExpectSecured(const Json& pod) {
  const Json& container = pod["spec"]["containers"][0];
  EXPECT_THAT(ArgumentsOf(pod),
              IsSupersetOf({"--certificates=operators.adamant:7071",
                            "--tls-token=/var/run/secrets/adamant.dev/token",
                            "--trust-domain=adamant.local",
                            "--namespace=team"}));
  EXPECT_THAT(container["env"].get<std::vector<Json>>(),
              Contains(Json({{"name", "ADAMANT_ROOTS"}, {"value", "the roots"}})));
  EXPECT_THAT(container["volumeMounts"].get<std::vector<Json>>(),
              Contains(Json({{"name", "tls-token"},
                             {"mountPath", "/var/run/secrets/adamant.dev"},
                             {"readOnly", true}})));
  const Json token = {{"audience", "adamant.dev/certificates/adamant.local"},
                      {"expirationSeconds", 600},
                      {"path", "token"}};
  const Json projected = {{"defaultMode", 0400},
                          {"sources", Json::array({{{"serviceAccountToken", token}}})}};
  EXPECT_THAT(pod["spec"]["volumes"].get<std::vector<Json>>(),
              Contains(Json({{"name", "tls-token"}, {"projected", projected}})));
}

TEST(PodObjectTest, ProcessesThatUseTlsGetWhatTheyAskForTheirCertificateWith) {
  for (const StartProcess& process : {kWorker, kDataServer, kParameterServer}) {
    const Json pod = PodObject(kJob, *ReadTestJob(), process, 1, SettingsWithTls());
    ExpectSecured(pod);
    EXPECT_THAT(ArgumentsOf(pod), Contains("--controller=operators.adamant:7072"));
    EXPECT_EQ(pod["spec"]["automountServiceAccountToken"], false);
    EXPECT_EQ(pod["metadata"], PodOf(process)["metadata"]);
  }
  ExpectSecured(ExportPodObject(kJob, *ReadTestJob(), {7, 1}, SettingsWithTls()));
}

TEST(PodObjectTest, WhoTalksToNobodyNeedsNoCertificate) {
  EXPECT_EQ(OutputTrialObject(kJob, *ReadTestJob(), SettingsWithTls()),
            OutputTrialObject(kJob, *ReadTestJob(), kPodSettings));
}

TEST(PodObjectTest, PodsNameThePodGroupOfTheCoschedulingPlugin) {
  const Json spec = {{"pods", {{"scheduling", {{"podGroup", "digits"}}}}}};
  for (const StartProcess& process : {kWorker, kDataServer, kParameterServer}) {
    const Json metadata = PodOf(process, spec)["metadata"];
    EXPECT_EQ(metadata["labels"]["scheduling.x-k8s.io/pod-group"], "digits");
    EXPECT_FALSE(metadata["labels"].contains("kueue.x-k8s.io/pod-group-name"));
  }
}

TEST(PodObjectTest, MetadataSayWhoseThePodIs) {
  const Json metadata = PodOf(kWorker)["metadata"];
  EXPECT_EQ(metadata["name"], "mnist-worker-1-3");
  EXPECT_EQ(metadata["namespace"], "team");
  EXPECT_EQ(metadata["labels"],
            Json({{"app.kubernetes.io/name", "adamant"},
                  {"app.kubernetes.io/managed-by", "adamant-operator"},
                  {"adamant.dev/job", "mnist"},
                  {"adamant.dev/job-uid", kJob.uid},
                  {"adamant.dev/role", "worker"},
                  {"adamant.dev/slot", "1"},
                  {"adamant.dev/generation", "3"}}));
  EXPECT_EQ(metadata["ownerReferences"],
            Json::array({{{"apiVersion", "adamant.dev/v1alpha1"},
                          {"kind", "TrainingJob"},
                          {"name", "mnist"},
                          {"uid", kJob.uid},
                          {"controller", true},
                          {"blockOwnerDeletion", true}}}));
}

TEST(PodObjectTest, EveryRoleRunsItsProgramAndFindsItsController) {
  for (const StartProcess& process : {kWorker, kDataServer, kParameterServer}) {
    const Json pod = PodOf(process);
    const Json& container = pod["spec"]["containers"][0];
    EXPECT_EQ(container["image"], kPodSettings.image.name);
    EXPECT_EQ(container["command"],
              Json::array({"adamant-" + std::string(controller::RoleName(process.id.role))}));
    EXPECT_THAT(ArgumentsOf(pod),
                IsSupersetOf(std::vector<std::string>{
                    "--controller=adamant-control.adamant:7070",
                    "--job=" + kJob.uid,
                    "--slot=" + std::to_string(process.id.slot),
                    "--generation=" + std::to_string(process.generation)}));
  }
}

TEST(PodObjectTest, OnlyParameterServersReplicateAndNameTheirNode) {
  EXPECT_THAT(ArgumentsOf(PodOf(kParameterServer)),
              IsSupersetOf({"--replication-listen=$(POD_IP):7072", "--node=$(NODE_NAME)"}));
  for (const StartProcess& process : {kWorker, kDataServer}) {
    EXPECT_THAT(ArgumentsOf(PodOf(process)), Not(Contains("--node=$(NODE_NAME)")));
  }
}

TEST(PodObjectTest, PortsAreThoseThatTheRoleListensOn) {
  const auto ports = [](const StartProcess& process) {
    return NamesIn(PodOf(process)["spec"]["containers"][0]["ports"]);
  };
  EXPECT_THAT(ports(kWorker), ElementsAre("metrics"));
  EXPECT_THAT(ports(kDataServer), ElementsAre("metrics", "service"));
  EXPECT_THAT(ports(kParameterServer), ElementsAre("metrics", "service", "replication"));
}

TEST(PodObjectTest, ArgumentsUseOnlyVariablesThatTheContainerHas) {
  const Json pod = PodOf(kParameterServer);
  EXPECT_THAT(NamesIn(pod["spec"]["containers"][0]["env"]),
              ElementsAre("POD_IP", "NODE_NAME", "ADAMANT_POD_UID"));
}

TEST(PodObjectTest, OnlyAParameterServersDataOutliveThePod) {
  const auto data = [](const StartProcess& process) {
    const Json volumes = PodOf(process)["spec"]["volumes"];
    EXPECT_THAT(NamesIn(volumes), ElementsAre("data", "tmp"));
    return volumes[0];
  };
  EXPECT_EQ(data(kParameterServer),
            Json({{"name", "data"},
                  {"persistentVolumeClaim", {{"claimName", "mnist-parameter-server-2-1"}}}}));
  EXPECT_EQ(data(kWorker), Json({{"name", "data"}, {"emptyDir", Json::object()}}));
  EXPECT_EQ(data(kDataServer), Json({{"name", "data"}, {"emptyDir", Json::object()}}));
}

// What the policy "restricted" of the Pod Security Standards asks for.
void ExpectRestricted(const Json& pod) {
  const Json& security = pod["spec"]["securityContext"];
  EXPECT_EQ(security["runAsNonRoot"], true);
  EXPECT_GT(security["runAsUser"], 0);
  EXPECT_EQ(security["seccompProfile"], Json({{"type", "RuntimeDefault"}}));
  for (const Json& container : pod["spec"]["containers"]) {
    EXPECT_EQ(container["securityContext"]["allowPrivilegeEscalation"], false);
    EXPECT_EQ(container["securityContext"]["readOnlyRootFilesystem"], true);
    EXPECT_EQ(container["securityContext"]["capabilities"], Json({{"drop", {"ALL"}}}));
  }
  EXPECT_EQ(pod["spec"]["automountServiceAccountToken"], false);
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
}

TEST(PodObjectTest, PodsAreAllowedWherePodSecurityIsRestricted) {
  for (const StartProcess& process : {kWorker, kDataServer, kParameterServer}) {
    ExpectRestricted(PodOf(process));
  }
  ExpectRestricted(ExportPodObject(kJob, *ReadTestJob(), {7, 1}, kPodSettings));
}

TEST(PodObjectTest, PodsOfARoleKeepAwayFromEachOtherWhereTheyCan) {
  const Json pod = PodOf(kParameterServer);
  const Json& term = pod["spec"]["affinity"]["podAntiAffinity"]
                        ["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"];
  EXPECT_EQ(term["topologyKey"], "kubernetes.io/hostname");
  EXPECT_EQ(term["labelSelector"]["matchLabels"],
            Json({{"adamant.dev/job-uid", kJob.uid}, {"adamant.dev/role", "parameter-server"}}));
}

TEST(PodObjectTest, ATemplateIsMergedOverThePodOfItsRoleOnly) {
  const Json spec = Json::parse(R"({"pods": {"worker": {"spec": {
      "nodeSelector": {"gpu": "yes"},
      "tolerations": [{"key": "gpu", "operator": "Exists"}],
      "containers": [{"name": "adamant", "resources": {"limits": {"nvidia.com/gpu": 1}},
                      "env": [{"name": "OMP_NUM_THREADS", "value": "4"}]},
                     {"name": "sidecar", "image": "x"}],
      "volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}]}}}})");
  const Json pod = PodOf(kWorker, spec);
  EXPECT_EQ(pod["spec"]["nodeSelector"], Json({{"gpu", "yes"}}));
  EXPECT_EQ(pod["spec"]["tolerations"], Json::array({{{"key", "gpu"}, {"operator", "Exists"}}}));
  ASSERT_THAT(NamesIn(pod["spec"]["containers"]), ElementsAre("adamant", "sidecar"));
  const Json& container = pod["spec"]["containers"][0];
  EXPECT_EQ(container["resources"]["limits"]["nvidia.com/gpu"], 1);
  EXPECT_EQ(container["image"], kPodSettings.image.name);
  EXPECT_THAT(NamesIn(container["env"]),
              ElementsAre("POD_IP", "NODE_NAME", "ADAMANT_POD_UID", "OMP_NUM_THREADS"));
  EXPECT_EQ(pod["spec"]["volumes"][0]["emptyDir"], Json({{"medium", "Memory"}}));
  EXPECT_EQ(PodOf(kDataServer, spec), PodOf(kDataServer));
}

// The validator refuses such a job; one that it had let pass would run two processes as one.
TEST(PodObjectTest, ATemplateCannotMakeAPodRestart) {
  const auto job = ReadTestJob();
  auto& fields = *job->mutable_spec()->mutable_pods()->mutable_worker()->mutable_spec();
  (*fields.mutable_fields())["restartPolicy"].set_string_value("Always");
  EXPECT_EQ(PodObject(kJob, *job, kWorker, 1, kPodSettings)["spec"]["restartPolicy"], "Never");
}

PodSettings FetchedBySecrets() {
  PodSettings settings = kPodSettings;
  settings.image.pull_policy = "Always";
  settings.image.pull_secrets = {"registry", "mirror"};
  return settings;
}

TEST(PodObjectTest, AllPodsOfAJobFetchTheImageAsTheOperatorIsTold) {
  const PodSettings settings = FetchedBySecrets();
  const auto job = ReadTestJob();
  for (const Json& pod : {PodObject(kJob, *job, kWorker, 1, settings),
                          PodObject(kJob, *job, kDataServer, 1, settings),
                          PodObject(kJob, *job, kParameterServer, 1, settings),
                          ExportPodObject(kJob, *job, {7, 1}, settings),
                          OutputTrialObject(kJob, *job, settings)}) {
    EXPECT_THAT(NamesIn(pod["spec"]["imagePullSecrets"]), ElementsAre("registry", "mirror"));
    EXPECT_EQ(pod["spec"]["containers"][0]["imagePullPolicy"], "Always");
  }
}

TEST(PodObjectTest, WhereTheOperatorIsToldNothingOfItNoPodSaysHowItsImageIsFetched) {
  for (const Json& pod : {PodOf(kWorker), OutputTrialObject(kJob, *ReadTestJob(), kPodSettings)}) {
    EXPECT_FALSE(pod["spec"].contains("imagePullSecrets"));
    EXPECT_FALSE(pod["spec"]["containers"][0].contains("imagePullPolicy"));
  }
}

TEST(PodObjectTest, ATemplateSaysOtherwiseHowItsImageIsFetched) {
  const auto worker = [](const Json& overlay) {
    const Json spec = {{"pods", {{"worker", {{"spec", overlay}}}}}};
    return PodObject(kJob, *ReadTestJob(spec), kWorker, 1, FetchedBySecrets())["spec"];
  };
  const auto container = [](const Json& fields) {
    Json named = {{"name", "adamant"}};
    named.update(fields);
    return Json{{"containers", Json::array({named})}};
  };
  EXPECT_EQ(worker(container({{"imagePullPolicy", "Never"}}))["containers"][0]["imagePullPolicy"],
            "Never");
  EXPECT_FALSE(
      worker(container({{"image", "mine:latest"}}))["containers"][0].contains("imagePullPolicy"))
      << "the operator's policy is of its own image";
  EXPECT_THAT(NamesIn(worker({{"imagePullSecrets", {{{"name", "mine"}}}}})["imagePullSecrets"]),
              ElementsAre("registry", "mirror", "mine"));
}

TEST(PodObjectTest, TemplatesAddLabelsAndAnnotations) {
  const Json pod = WorkerWith({{"metadata",
                                {{"labels", {{"kueue.x-k8s.io/queue-name", "a"}}},
                                 {"annotations", {{"example.org/b", "c"}}}}}});
  EXPECT_EQ(pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "a");
  EXPECT_EQ(pod["metadata"]["annotations"], Json({{"example.org/b", "c"}}));
}

TEST(PodObjectTest, TemplatesCannotChangeTheOperatorsLabels) {
  const Json plain = PodOf(kWorker)["metadata"]["labels"];
  for (const char* label : {"adamant.dev/job",
                            "adamant.dev/job-uid",
                            "adamant.dev/role",
                            "adamant.dev/slot",
                            "adamant.dev/generation",
                            "adamant.dev/export",
                            "app.kubernetes.io/name"}) {
    const Json pod = WorkerWith({{"metadata", {{"labels", {{label, "9"}}}}}});
    EXPECT_EQ(pod["metadata"]["labels"], plain) << label;
  }
}

// A template is free: what is no pod, the API refuses.
TEST(PodObjectTest, WhateverATemplateHoldsThereIsAPod) {
  for (const char* overlay : {R"({"containers": null})",
                              R"({"containers": [{"name": "adamant", "$patch": 1}]})",
                              R"({"volumes": [{"name": "none", "$patch": "delete"}]})"}) {
    const Json pod = WorkerWith({{"spec", Json::parse(overlay)}});
    EXPECT_EQ(pod["metadata"]["name"], "mnist-worker-1-3") << overlay;
  }
}

TEST(PodObjectTest, AServersClaimHasTheSizeAndClassOfTheSpec) {
  const auto claim = [](const Json& storage) {
    const Json spec = {{"distribution", {{"parameterServers", {{"storage", storage}}}}}};
    return ClaimObject(kJob, *ReadTestJob(spec), 2, 3);
  };
  const Json named = claim({{"size", "5Gi"}, {"storageClass", "fast"}});
  EXPECT_EQ(named["metadata"], MetadataOf(kJob, "mnist-parameter-server-2-3"));
  EXPECT_EQ(named["spec"],
            Json({{"accessModes", {"ReadWriteOnce"}},
                  {"resources", {{"requests", {{"storage", "5Gi"}}}}},
                  {"storageClassName", "fast"}}));
  // Without a class the cluster's default is taken, which an empty one would forbid.
  EXPECT_FALSE(claim({{"size", "5Gi"}})["spec"].contains("storageClassName"));
}

TEST(PodObjectTest, AServersClaimWithoutASizeIsAsLargeAsItsShareOfTheModelNeeds) {
  constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
  const auto bytes = [](std::int64_t outputs, int copies, const char* location) {
    const Json layer = {{"name", "out"}, {"kind", "FullyConnected"}, {"outputs", outputs}};
    const Json spec = {
        {"model",
         {{"reference", nullptr},
          {"network",
           {{"input", {1, 28, 28}}, {"classes", outputs}, {"layers", Json::array({layer})}}}}},
        {"optimiser", {{"kind", "Momentum"}, {"location", location}, {"rate", 0.1}}},
        {"distribution", {{"parameterServers", {{"count", 4}, {"copies", copies}}}}}};
    const Json claim = ClaimObject(kJob, *ReadTestJob(spec), 0, 1);
    const auto text = claim["spec"]["resources"]["requests"]["storage"].get<std::string>();
    EXPECT_TRUE(text.ends_with("Mi") || text.ends_with("Gi")) << text;
    return *job::ParseBytes(text);
  };
  EXPECT_NEAR(static_cast<double>(bytes(10, 1, "Worker")), kGibibyte, 1 << 20);
  constexpr std::int64_t kClasses = 100'000;
  constexpr double kModel = 4.0 * kClasses * 785;  // 314 MB of weights and biases
  EXPECT_NEAR(
      static_cast<double>(bytes(kClasses, 1, "Worker")), kGibibyte + 10 * kModel / 4, 2 << 20);
  EXPECT_NEAR(static_cast<double>(bytes(kClasses, 3, "Server")),
              kGibibyte + 10 * 2 * 3 * kModel / 4,
              2 << 20);
}

TEST(PodObjectTest, TheOutputIsOnTheUsersClaimOrOneOfItsOwn) {
  const auto users = ReadTestJob({{"output", {{"claim", "models"}}}});
  EXPECT_EQ(OutputClaimName("mnist", *users), "models");
  EXPECT_TRUE(OutputClaimObject(kJob, *users).is_null());
  const auto own = ReadTestJob({{"output", {{"storage", {{"size", "1Gi"}}}}}});
  EXPECT_EQ(OutputClaimName("mnist", *own), "mnist-output");
  const Json claim = OutputClaimObject(kJob, *own);
  EXPECT_EQ(claim["metadata"], MetadataOf(kJob, "mnist-output"));
  EXPECT_EQ(claim["spec"]["resources"]["requests"]["storage"], "1Gi");
}

TEST(PodObjectTest, AnExportWritesFromItsInputsToTheOutput) {
  const auto spec = ReadTestJob({{"output", {{"claim", "models"}, {"path", "runs/1"}}}});
  const Json pod = ExportPodObject(kJob, *spec, {.snapshot = 7, .epochs = 501}, kPodSettings);
  EXPECT_EQ(pod["metadata"]["name"], "mnist-export-7");
  EXPECT_EQ(pod["metadata"]["labels"]["adamant.dev/export"], "7");
  EXPECT_FALSE(pod["metadata"]["labels"].contains("adamant.dev/role"));
  EXPECT_THAT(ArgumentsOf(pod),
              ElementsAre("save-model", "--inputs=/inputs", "--out=/data/runs/1"));
  EXPECT_EQ(pod["spec"]["containers"][0]["terminationMessagePolicy"], "FallbackToLogsOnError");
  EXPECT_EQ(pod["spec"]["volumes"],
            Json::parse(R"([{"name": "data", "persistentVolumeClaim": {"claimName": "models"}},
                            {"name": "tmp", "emptyDir": {}},
                            {"name": "inputs", "projected": {"sources": [
                                {"configMap": {"name": "mnist-export-7"}},
                                {"configMap": {"name": "mnist-epochs-0", "optional": true}},
                                {"configMap": {"name": "mnist-epochs-1", "optional": true}},
                                {"configMap": {"name": "mnist-epochs-2", "optional": true}}]}}])"));
  const auto root = ReadTestJob({{"output", {{"claim", "models"}}}});
  EXPECT_THAT(ArgumentsOf(ExportPodObject(kJob, *root, {7, 1}, kPodSettings)),
              Contains("--out=/data"));
}

TEST(PodObjectTest, TheTrialOfAnOutputWritesWhereTheModelWillBe) {
  const auto spec = ReadTestJob({{"output", {{"claim", "models"}, {"path", "runs/1"}}}});
  const Json pod = OutputTrialObject(kJob, *spec, kPodSettings);
  EXPECT_EQ(pod["metadata"]["name"], "mnist-export-check");
  EXPECT_THAT(ArgumentsOf(pod), ElementsAre("save-model", "--check", "--out=/data/runs/1"));
  EXPECT_EQ(pod["spec"]["volumes"],
            Json::parse(R"([{"name": "data", "persistentVolumeClaim": {"claimName": "models"}},
                            {"name": "tmp", "emptyDir": {}}])"));
  const auto view = ParsePod(pod);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->output, kOutputTrial);
}

TEST(PodObjectTest, ClaimsWithDataAreMountedIntoDataServersAndCannotBeWritten) {
  const Json files = {{"images", "images"}, {"labels", "labels"}, {"claim", "mnist"}};
  const Json spec = {{"data",
                      {{"train", {{"digits", nullptr}, {"idx", files}}},
                       {"validation", {{"digits", {{"seed", 2}, {"examples", 100}}}}}}}};
  const Json pod = PodOf(kDataServer, spec);
  EXPECT_THAT(
      pod["spec"]["volumes"],
      Contains(Json({{"name", "data-train"},
                     {"persistentVolumeClaim", {{"claimName", "mnist"}, {"readOnly", true}}}})));
  EXPECT_THAT(
      pod["spec"]["containers"][0]["volumeMounts"],
      Contains(Json({{"name", "data-train"}, {"mountPath", "/inputs/train"}, {"readOnly", true}})));
  EXPECT_THAT(NamesIn(pod["spec"]["volumes"]), Not(Contains("data-validation")));
  EXPECT_THAT(NamesIn(PodOf(kWorker, spec)["spec"]["volumes"]), Not(Contains("data-train")));
}

TEST(PodObjectTest, AClaimWithBothSetsIsOneVolume) {
  const auto pod_with = [](const char* train, const char* validation) {
    const auto on = [](const char* claim, const std::string& set) {
      return Json({{"images", set + "/images"}, {"labels", set + "/labels"}, {"claim", claim}});
    };
    return PodOf(kDataServer,
                 {{"data",
                   {{"train", {{"digits", nullptr}, {"idx", on(train, "train")}}},
                    {"validation", {{"digits", nullptr}, {"idx", on(validation, "test")}}}}}});
  };
  const Json one = pod_with("mnist", "mnist");
  EXPECT_THAT(NamesIn(one["spec"]["volumes"]), ElementsAre("data", "tmp", "data-train"));
  EXPECT_THAT(
      one["spec"]["containers"][0]["volumeMounts"],
      Contains(
          Json({{"name", "data-train"}, {"mountPath", "/inputs/validation"}, {"readOnly", true}})));
  EXPECT_THAT(NamesIn(pod_with("mnist", "test")["spec"]["volumes"]),
              ElementsAre("data", "tmp", "data-train", "data-validation"));
}

}  // namespace
}  // namespace adamant::kube
