#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/pods/objects/export_pod.h"
#include "tests/simulation/operator/cluster.h"

// How the model of a job in a simulated cluster comes to its output, where something is in its way.
namespace adamant::kube {
namespace {

using orchestration::Cluster;
using orchestration::kJobKey;
using orchestration::seconds;
using std::chrono::minutes;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Exports = orchestration::Nodes::Exports;

constexpr std::uint64_t kMostSnapshots = 30;  // of a job here

class JobExportTest : public testing::Test {
 protected:
  JobExportTest() { cluster_.nodes.SetExports(Exports::kWork); }
  void TearDown() override { EXPECT_EQ(cluster_.world.violations.first(), ""); }

  void Await(const std::string& phase) {
    cluster_.RunUntil([&] { return cluster_.user.PhaseNow() == phase; },
                      minutes(2),
                      "it does not become " + phase);
  }

  void AwaitMessage(const std::string& part) {
    cluster_.RunUntil([&] { return Message().find(part) != std::string::npos; },
                      minutes(3),
                      "no message of " + part);
  }

  [[nodiscard]] std::string Message() const {
    const auto job = cluster_.world.admin.Get(kTrainingJobs, kJobKey);
    return job.ok() ? StringAt(*job, {"status", "message"}) : "";
  }

  [[nodiscard]] std::vector<Json> List(const Resource& resource) const {
    return cluster_.world.admin.List(resource, {.ns = kJobKey.ns}).value_or(std::vector<Json>());
  }

  [[nodiscard]] std::vector<std::string> ExportPods() const {
    std::vector<std::string> names;
    for (const Json& pod : List(kPods)) {
      if (const std::string name = KeyOf(pod).name; name.starts_with("mnist-export-")) {
        names.push_back(name);
      }
    }
    return names;
  }

  [[nodiscard]] std::vector<std::string> Warnings() const {
    std::vector<std::string> texts;
    for (const Json& event : List(kEvents)) {
      if (StringAt(event, {"type"}) == "Warning") {
        texts.push_back(StringAt(event, {"reason"}) + ": " + StringAt(event, {"message"}));
      }
    }
    return texts;
  }

  /// Takes the names that the ConfigMaps of exports may have.
  void TakeNames(const Json& metadata) {
    for (std::uint64_t snapshot = 1; snapshot <= kMostSnapshots; ++snapshot) {
      Json map = {{"metadata", metadata}, {"data", {{"mine", "yes"}}}};
      map["metadata"]["namespace"] = kJobKey.ns;
      map["metadata"]["name"] = ExportName(kJobKey.name, snapshot);
      ASSERT_TRUE(cluster_.world.admin.Create(kConfigMaps, map).ok());
    }
  }

  [[nodiscard]] bool AllNamesAreTaken() const {
    for (std::uint64_t snapshot = 1; snapshot <= kMostSnapshots; ++snapshot) {
      const auto map =
          cluster_.world.admin.Get(kConfigMaps, {kJobKey.ns, ExportName(kJobKey.name, snapshot)});
      if (!map.ok() || (*map)["data"] != Json{{"mine", "yes"}} ||
          map->at("metadata").contains("ownerReferences")) {
        return false;
      }
    }
    return true;
  }

  void GiveNamesBack() {
    for (std::uint64_t snapshot = 1; snapshot <= kMostSnapshots; ++snapshot) {
      EXPECT_TRUE(
          cluster_.world.admin.Delete(kConfigMaps, {kJobKey.ns, ExportName(kJobKey.name, snapshot)})
              .ok());
    }
  }

  Cluster cluster_{1};
};

TEST_F(JobExportTest, AConfigMapOfTheUsersIsNotWrittenOver) {
  TakeNames(Json::object());
  cluster_.user.Apply();
  AwaitMessage("exists and is of no TrainingJob");
  EXPECT_THAT(Message(), HasSubstr("cannot create pod export-"));
  EXPECT_TRUE(AllNamesAreTaken());
  EXPECT_THAT(ExportPods(), IsEmpty());
  GiveNamesBack();
  Await("Succeeded");
}

TEST_F(JobExportTest, WhatAnEarlierJobWroteFromDoesNotBlockALaterOne) {
  TakeNames(MetadataOf({.key = kJobKey, .uid = "of-an-earlier-job"}, "any"));
  cluster_.user.Apply();
  Await("Succeeded");
}

TEST_F(JobExportTest, AModelThatCannotBeWrittenIsToldWithItsPodsLastWords) {
  cluster_.nodes.SetExports(Exports::kFail);
  cluster_.user.Apply();
  AwaitMessage("cannot write the model to claim ");
  EXPECT_THAT(Message(),
              AllOf(HasSubstr(": its pod mnist-export-"),
                    HasSubstr("exited with code 1: " +
                              std::string(orchestration::Nodes::kWhyExportsFail))));
  EXPECT_THAT(ExportPods(), SizeIs(1)) << "its log can be read until the next attempt";
  cluster_.RunFor(seconds(5));
  EXPECT_THAT(Warnings(), Contains(HasSubstr("FailedWrite: cannot write the model to claim ")));
  cluster_.nodes.SetExports(Exports::kWork);
  Await("Succeeded");
  EXPECT_EQ(Message(), "");
}

TEST_F(JobExportTest, WhatFailsAgainAndAgainIsTriedLessAndLessOften) {
  std::uint64_t attempts = 0;
  cluster_.world.api.SetFaults([&](const HttpRequest& request) {
    attempts += request.method == "POST" &&
                        request.target.ends_with("/pods?fieldValidation=Strict") &&
                        request.body.find("save-model") != std::string::npos
                    ? 1
                    : 0;
    return MemoryApiServer::Fault::kNone;
  });
  cluster_.nodes.SetExports(Exports::kFail);
  cluster_.user.Apply();
  AwaitMessage("cannot write the model to claim ");
  cluster_.RunFor(minutes(2));
  EXPECT_LE(attempts, 7U);
  cluster_.RunFor(minutes(10));
  EXPECT_LE(attempts, 13U);
  EXPECT_GE(attempts, 9U);
}

TEST_F(JobExportTest, APodThatDoesNotStartIsToldAndGoesWhenTheJobIsSuspended) {
  cluster_.nodes.SetExports(Exports::kNeverStart);
  cluster_.user.Apply();
  AwaitMessage("has not started for 60 s; `kubectl adamant explain` says why");
  EXPECT_THAT(ExportPods(), SizeIs(1));
  cluster_.user.Suspend();
  Await("Suspended");
  cluster_.RunFor(seconds(20));
  EXPECT_THAT(ExportPods(), IsEmpty());
  EXPECT_THAT(Message(), Not(HasSubstr("has not started")));
  cluster_.nodes.SetExports(Exports::kWork);
  cluster_.user.Resume();
  Await("Succeeded");
}

}  // namespace
}  // namespace adamant::kube
