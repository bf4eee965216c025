#include "operator/kube/api/orphans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

// What a job left behind that was deleted while the garbage collector was away.
namespace adamant::kube {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class OrphansTest : public JobReconcilerRig {
 protected:
  /// An object as an earlier job of this name made it.
  Json MakeLeft(const Resource& resource, const std::string& name, const std::string& uid) {
    const Json object = {{"metadata", MetadataOf({.key = kJob.key, .uid = uid}, name)}};
    return client_.Create(resource, object).value();
  }

  /// A job that is there, and its UID.
  std::string MakeJob(const std::string& name) {
    Json job = JobObject();
    job["metadata"]["name"] = name;
    return UidOf(client_.Create(kTrainingJobs, job).value());
  }

  [[nodiscard]] bool IsThere(const Resource& resource, const Json& object) const {
    const auto found = client_.Get(resource, KeyOf(object));
    return found.ok() && UidOf(*found) == UidOf(object);
  }

  [[nodiscard]] std::string TellMakingWay(const Resource& resource, const Json& there) {
    return MakeWay(client_, resource, there, {.key = kJob.key, .uid = "of-the-new-job"}).ToString();
  }

  void WorkForTenSeconds() {
    for (int i = 0; i < 10; ++i) {
      WorkAfter(seconds(1));
    }
  }
};

TEST_F(OrphansTest, AJobWhoseNameIsBlockedByWhatAnEarlierOneLeftMakesItsWay) {
  const Json state = MakeLeft(kConfigMaps, "mnist-state", "of-an-earlier-job");
  const Json pod = MakeLeft(kPods, "mnist-worker-0-1", "of-an-earlier-job");
  const Json claim =
      MakeLeft(kPersistentVolumeClaims, "mnist-parameter-server-0-1", "of-an-earlier-job");
  Lead({{"distribution",
         {{"workers", 1}, {"parameterServers", {{"count", 1}, {"copies", 1}, {"buckets", 1}}}}}});
  WorkForTenSeconds();
  EXPECT_THAT(Names(kPods), Contains("mnist-worker-0-1"));
  EXPECT_THAT(Names(kPersistentVolumeClaims), Contains("mnist-parameter-server-0-1"));
  EXPECT_FALSE(IsThere(kConfigMaps, state));
  EXPECT_FALSE(IsThere(kPods, pod));
  EXPECT_FALSE(IsThere(kPersistentVolumeClaims, claim));
}

TEST_F(OrphansTest, WhatIsOfAJobThatIsThereStays) {
  const std::string uid = MakeJob("another");
  Json object = {
      {"metadata", MetadataOf({.key = {kJob.key.ns, "another"}, .uid = uid}, "mnist-0")}};
  object = client_.Create(kShardMaps, object).value();
  EXPECT_THAT(TellMakingWay(kShardMaps, object),
              HasSubstr("ShardMap team/mnist-0 is of the TrainingJob another"));
  EXPECT_TRUE(IsThere(kShardMaps, object));
}

TEST_F(OrphansTest, WhatIsNotOfAJobStays) {
  Json object = {{"metadata",
                  {{"namespace", "team"},
                   {"name", "mnist-state"},
                   {"labels", {{kJobUidLabel, "of-an-earlier-job"}}}}}};
  object = client_.Create(kConfigMaps, object).value();
  EXPECT_THAT(TellMakingWay(kConfigMaps, object), HasSubstr("is of no TrainingJob"));
  EXPECT_TRUE(IsThere(kConfigMaps, object));
}

TEST_F(OrphansTest, NothingIsDeletedWhileTheApiDoesNotKnowItsOwner) {
  const Json object = MakeLeft(kConfigMaps, "mnist-state", "of-an-earlier-job");
  server_.SetFaults([](const HttpRequest& request) {
    return request.method == "GET" ? MemoryApiServer::Fault::kRefuse
                                   : MemoryApiServer::Fault::kNone;
  });
  EXPECT_THAT(TellMakingWay(kConfigMaps, object), HasSubstr("connection refused"));
  server_.SetFaults(nullptr);
  EXPECT_TRUE(IsThere(kConfigMaps, object));
}

TEST_F(OrphansTest, OnlyWhatWasLookedAtIsDeleted) {
  const Json object = MakeLeft(kConfigMaps, "mnist-state", "of-an-earlier-job");
  ASSERT_TRUE(client_.Delete(kConfigMaps, KeyOf(object)).ok());
  const Json later = MakeLeft(kConfigMaps, "mnist-state", "of-a-later-job");
  EXPECT_THAT(TellMakingWay(kConfigMaps, object), HasSubstr("was left behind"));
  EXPECT_TRUE(IsThere(kConfigMaps, later));
}

TEST_F(OrphansTest, WhatIsBeingDeletedIsWaitedFor) {
  Json object = MakeLeft(kPods, "mnist-worker-0-1", "of-an-earlier-job");
  object["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z";
  EXPECT_THAT(TellMakingWay(kPods, object), HasSubstr("is still being deleted"));
  EXPECT_TRUE(IsThere(kPods, object));
}

// --- What is wrong with spec.pods

class TemplatesTest : public OrphansTest {
 protected:
  /// The API answers a dry run with a pod of this role so.
  void AnswerPodOf(const std::string& role, int code, const std::string& message) {
    server_.SetAnswers([=, this](const HttpRequest& request) -> std::optional<HttpResponse> {
      const bool strict =
          request.target.find("fieldValidation=Strict&dryRun=All") != std::string::npos;
      if (request.method != "POST" || !strict ||
          request.body.find("\"adamant-" + role + "\"") == std::string::npos) {
        return std::nullopt;
      }
      ++asked_;
      const Json status = {{"kind", "Status"}, {"code", code}, {"message", message}};
      return HttpResponse{.status = code, .headers = {}, .body = status.dump()};
    });
  }

  [[nodiscard]] std::string Told(const char* field) const {
    return StringAt(client_.Get(kTrainingJobs, kJob.key).value(), {"status", field});
  }

  int asked_ = 0;
};

TEST_F(TemplatesTest, AnUnknownFieldOfSpecPodsFailsTheJobBeforeAnythingIsMade) {
  AnswerPodOf(
      "worker", 400, "strict decoding error: unknown field \"spec.containers[0].resorces\"");
  Lead(Json::object());
  Work();
  EXPECT_EQ(Told("phase"), "Failed");
  EXPECT_EQ(Told("message"),
            "the API refuses spec.pods.worker: strict decoding error: unknown field "
            "\"spec.containers[0].resorces\"");
  EXPECT_TRUE(Names(kPods).empty());
  EXPECT_TRUE(Names(kPersistentVolumeClaims).empty());
}

TEST_F(TemplatesTest, AWebhookThatKnowsNoDryRunIsNoObstacle) {
  AnswerPodOf("worker", 400, "admission webhook \"a\" does not support dry run");
  Lead(Json::object());
  WorkOn(Objects());
  EXPECT_GE(asked_, 1);
  EXPECT_NE(Told("phase"), "Failed");
  EXPECT_THAT(Names(kPods), Contains("mnist-data-server-0-1"));
}

TEST_F(TemplatesTest, ADryRunMakesNothingAndIsDoneOnce) {
  int dry_runs = 0;
  server_.SetFaults([&](const HttpRequest& request) {
    dry_runs += request.target.find("dryRun=All") != std::string::npos ? 1 : 0;
    return MemoryApiServer::Fault::kNone;
  });
  Lead(Json::object());
  WorkForTenSeconds();
  EXPECT_EQ(dry_runs, 3);
}

TEST_F(TemplatesTest, AWarningOfTheApiIsAnEventOnce) {
  server_.SetAnswers([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.target.find("dryRun=All") == std::string::npos) {
      return std::nullopt;
    }
    return HttpResponse{.status = 201,
                        .headers = {{"warning", "299 - \"would violate PodSecurity\""}},
                        .body = "{}"};
  });
  Lead(Json::object());
  WorkForTenSeconds();
  events_.Step();
  int told = 0;
  for (const Json& event : List(kEvents)) {
    told += event["message"] == "the API warns: would violate PodSecurity" ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace adamant::kube
