#include "operator/kube/pods/objects/pod_requests.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/pods/objects/export_pod.h"
#include "operator/kube/pods/objects/pod_object.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "tests/unit/operator/kube/job/job_fixture.h"

namespace adamant::kube {
namespace {

using controller::Role;

Json PodOfRole(Role role, const Json& spec = Json::object()) {
  return PodObject(kJob, *ReadTestJob(spec), {{role, 0}, 1}, 1, kPodSettings);
}

Json ResourcesOf(const Json& pod) { return pod["spec"]["containers"][0]["resources"]; }

// Of a worker whose container has these resources in its template.
Json WithResources(const Json& resources) {
  const Json container = {{"name", "adamant"}, {"resources", resources}};
  return ResourcesOf(
      PodOfRole(Role::kWorker,
                {{"pods", {{"worker", {{"spec", {{"containers", Json::array({container})}}}}}}}}));
}

double Mebibytes(const Json& pod) {
  const std::string text = ResourcesOf(pod)["requests"]["memory"].get<std::string>();
  EXPECT_TRUE(text.ends_with("Mi")) << text;
  return std::stod(text);
}

// Peaks as they were measured: docs/bench/memory.md.
TEST(PodRequestsTest, EachRoleAsksForTheMemoryThatItIsExpectedToNeed) {
  const Json spec = {{"data",
                      {{"train", {{"digits", {{"seed", 1}, {"examples", 60000}}}}},
                       {"validation", {{"digits", {{"seed", 2}, {"examples", 1000}}}}}}},
                     {"distribution", {{"workers", 2}}}};
  EXPECT_NEAR(Mebibytes(PodOfRole(Role::kWorker, spec)), 79, 16);
  EXPECT_NEAR(Mebibytes(PodOfRole(Role::kParameterServer, spec)), 73, 15);
  EXPECT_NEAR(Mebibytes(PodOfRole(Role::kDataServer, spec)), 113, 23);
}

TEST(PodRequestsTest, ExamplesInFilesAreNotKnown) {
  const auto source = [](const std::string& folder) {
    const Json files = {{"images", folder + "/images"}, {"labels", folder + "/labels"}};
    return Json{{"digits", nullptr}, {"idx", files}};
  };
  const Json spec = {
      {"data", {{"train", source("/no/such")}, {"validation", source("/nor/such")}}}};
  EXPECT_NEAR(Mebibytes(PodOfRole(Role::kDataServer, spec)), 24, 1);
}

TEST(PodRequestsTest, AWorkerAsksForProcessorTimeByItsThreads) {
  const auto cpu = [](Role role, int threads) {
    const Json spec = {{"distribution", {{"threadsPerWorker", threads}}}};
    return ResourcesOf(PodOfRole(role, spec))["requests"]["cpu"];
  };
  EXPECT_EQ(cpu(Role::kWorker, 1), "250m");
  EXPECT_EQ(cpu(Role::kWorker, 8), "2000m");
  EXPECT_EQ(cpu(Role::kParameterServer, 8), "50m");
  EXPECT_EQ(cpu(Role::kDataServer, 8), "50m");
}

TEST(PodRequestsTest, NoPodHasLimitsByItself) {
  for (const Role role : {Role::kWorker, Role::kDataServer, Role::kParameterServer}) {
    EXPECT_FALSE(ResourcesOf(PodOfRole(role)).contains("limits"));
  }
}

TEST(PodRequestsTest, ATemplatesRequestsWinEachByItself) {
  EXPECT_EQ(WithResources({{"requests", {{"cpu", "2"}, {"memory", "1Gi"}}}}),
            Json({{"requests", {{"cpu", "2"}, {"memory", "1Gi"}}}}));
  const Json resources = WithResources({{"requests", {{"memory", "0"}}}});
  EXPECT_EQ(resources["requests"], Json({{"memory", "0"}, {"cpu", "250m"}}));
}

// Kubernetes takes a limit for the request where there is none; one above it would be refused.
TEST(PodRequestsTest, WhereATemplateHasALimitNothingIsAdded) {
  const Json resources = WithResources({{"limits", {{"memory", "16Mi"}}}});
  EXPECT_EQ(resources["limits"], Json({{"memory", "16Mi"}}));
  EXPECT_EQ(resources["requests"], Json({{"cpu", "250m"}}));
}

TEST(PodRequestsTest, ResourcesOfTheWholePodCountToo) {
  const Json overlay = {{"resources", {{"limits", {{"cpu", "100m"}, {"memory", "16Mi"}}}}}};
  const Json pod = PodOfRole(Role::kWorker, {{"pods", {{"worker", {{"spec", overlay}}}}}});
  EXPECT_FALSE(pod["spec"]["containers"][0].contains("resources"));
}

TEST(PodRequestsTest, OtherContainersAreTheUsers) {
  const Json sidecar = {{"name", "sidecar"}, {"image", "x"}};
  const Json overlay = {{"containers", Json::array({sidecar})}};
  const Json pod = PodOfRole(Role::kWorker, {{"pods", {{"worker", {{"spec", overlay}}}}}});
  EXPECT_EQ(pod["spec"]["containers"][1], sidecar);
  EXPECT_TRUE(ResourcesOf(pod).contains("requests"));
}

// The API refuses them, which is told; there must be a pod to be refused.
TEST(PodRequestsTest, ResourcesThatAreNoneAreLeftAsTheyAre) {
  for (const Json& wrong : {Json("all"), Json::parse(R"({"requests": "all"})")}) {
    EXPECT_EQ(WithResources(wrong), wrong);
  }
}

TEST(PodRequestsTest, PodsThatWriteToTheOutputAskForSomethingToo) {
  const auto job = ReadTestJob();
  const Json wanted = {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}};
  EXPECT_EQ(ResourcesOf(ExportPodObject(kJob, *job, {7, 1}, kPodSettings)), wanted);
  EXPECT_EQ(ResourcesOf(OutputTrialObject(kJob, *job, kPodSettings)), wanted);
}

}  // namespace
}  // namespace adamant::kube
