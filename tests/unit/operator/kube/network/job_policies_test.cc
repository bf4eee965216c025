#include "operator/kube/network/job_policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tests/unit/operator/kube/job/job_fixture.h"
#include "tests/unit/operator/kube/network/policy_evaluation.h"

namespace adamant::kube {
namespace {

const NetworkSettings kSettings{.operators_namespace = "adamant-system",
                                .operators_ports = {7070, 7071, 7072},
                                .metrics_namespaces = {"monitoring"},
                                .dns_ports = {53, 5353}};

Json Labels(const char* role, const std::string& uid = kJob.uid) {
  return {{kJobUidLabel, uid}, {kRoleLabel, role}};
}

// Everybody who may try.
const std::map<std::string, Endpoint> kEnds = {
    {"worker", {kJob.key.ns, Labels("worker")}},
    {"data-server", {kJob.key.ns, Labels("data-server")}},
    {"parameter-server", {kJob.key.ns, Labels("parameter-server")}},
    {"exporter", {kJob.key.ns, {{kJobUidLabel, kJob.uid}, {kExportLabel, "7"}}}},
    {"operator", {"adamant-system", {{"app.kubernetes.io/name", "adamant-operator"}}}},
    {"prometheus", {"monitoring", {{"app", "prometheus"}}}},
    {"another job's worker", {kJob.key.ns, Labels("worker", "other")}},
    {"a worker of that UID elsewhere", {"other", Labels("worker")}},
    {"a stranger", {kJob.key.ns, Json::object()}},
    {"a false operator", {kJob.key.ns, {{"app.kubernetes.io/name", "adamant-operator"}}}},
    {"outside", {"", Json::object()}}};

const std::set<std::string> kOfTheJob = {"worker", "data-server", "parameter-server", "exporter"};

using Way = std::tuple<std::string, std::string, int>;

// All ways at ports of ours from or to a pod of the job that the policies leave open.
std::set<Way> OpenWays(const std::vector<Json>& policies) {
  std::set<Way> open;
  for (const auto& [from, source] : kEnds) {
    for (const auto& [to, target] : kEnds) {
      for (const int port : {7070, 7071, 7072, 8080}) {
        if ((kOfTheJob.contains(from) || kOfTheJob.contains(to)) &&
            Allows(policies, source, target, port)) {
          open.emplace(from, to, port);
        }
      }
    }
  }
  return open;
}

TEST(JobPoliciesTest, WhatIsNotNeededIsDenied) {
  std::set<Way> wanted = {{"worker", "parameter-server", 7071},
                          {"worker", "data-server", 7071},
                          {"data-server", "parameter-server", 7071},
                          {"exporter", "parameter-server", 7071},
                          {"parameter-server", "parameter-server", 7072}};
  for (const std::string& pod : kOfTheJob) {
    wanted.emplace("prometheus", pod, 7070);
    for (const int port : {7070, 7071, 7072}) {
      wanted.emplace(pod, "operator", port);
    }
  }
  EXPECT_EQ(OpenWays(JobPolicies(kJob, ReadTestJob()->spec(), kSettings)), wanted);
}

TEST(JobPoliciesTest, MetricsAreForNobodyWhereNoNamespaceIsNamed) {
  NetworkSettings settings = kSettings;
  settings.metrics_namespaces.clear();
  const auto policies = JobPolicies(kJob, ReadTestJob()->spec(), settings);
  for (const std::string& pod : kOfTheJob) {
    EXPECT_FALSE(Allows(policies, kEnds.at("prometheus"), kEnds.at(pod), 7070)) << pod;
  }
}

TEST(JobPoliciesTest, NamesMayBeLookedUpAtThePortsOfDns) {
  const auto policies = JobPolicies(kJob, ReadTestJob()->spec(), kSettings);
  const Endpoint dns{"kube-system", {{"k8s-app", "kube-dns"}}};
  for (const std::string& pod : kOfTheJob) {
    for (const char* protocol : {"TCP", "UDP"}) {
      EXPECT_TRUE(Allows(policies, kEnds.at(pod), dns, 53, protocol)) << pod;
      EXPECT_TRUE(Allows(policies, kEnds.at(pod), dns, 5353, protocol)) << pod;
      EXPECT_FALSE(Allows(policies, kEnds.at(pod), dns, 54, protocol)) << pod;
    }
  }
}

std::unique_ptr<v1::TrainingJob> JobWithSource(const std::string& url) {
  const Json file = {{"url", url}, {"sha256", std::string(64, 'a')}};
  const Json source = {{"digits", nullptr}, {"download", {{"images", file}, {"labels", file}}}};
  return ReadTestJob({{"data", {{"train", source}}}});
}

std::set<int> PortsOutside(const std::string& role, const std::string& url) {
  const auto job = JobWithSource(url);
  const auto policies = JobPolicies(kJob, job->spec(), kSettings);
  std::set<int> ports;
  for (const int port : {22, 80, 443, 8080, 8443, 9000}) {
    if (Allows(policies, kEnds.at(role), kEnds.at("outside"), port)) {
      ports.insert(port);
    }
  }
  return ports;
}

TEST(JobPoliciesTest, DataServersReachThePortsOfTheirSources) {
  using testing::ElementsAre;
  EXPECT_THAT(PortsOutside("data-server", "https://example.org/a"), ElementsAre(443));
  EXPECT_THAT(PortsOutside("data-server", "https://example.org:8443/a"), ElementsAre(8443));
  EXPECT_THAT(PortsOutside("data-server", "http://[fd00::1]:9000/a:22"), ElementsAre(443, 9000));
  EXPECT_THAT(PortsOutside("data-server", "http://[fd00::1]/a"), ElementsAre(80, 443));
  EXPECT_THAT(PortsOutside("data-server", "http://example.org?a=b:22"), ElementsAre(80, 443));
  EXPECT_THAT(PortsOutside("worker", "https://example.org/a"), ElementsAre());
}

TEST(JobPoliciesTest, PoliciesAreTheJobsOwnAndDenyBothWays) {
  std::set<std::string> names;
  for (const Json& policy : JobPolicies(kJob, ReadTestJob()->spec(), kSettings)) {
    const std::string name = KeyOf(policy).name;
    names.insert(name);
    EXPECT_EQ(policy["metadata"], MetadataOf(kJob, name));
    EXPECT_EQ(policy["spec"]["policyTypes"], Json({"Ingress", "Egress"}));
  }
  EXPECT_EQ(names,
            (std::set<std::string>{
                "mnist-data-server", "mnist-export", "mnist-parameter-server", "mnist-worker"}));
}

}  // namespace
}  // namespace adamant::kube
