#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "operator/kube/job/job_reconcilers.h"
#include "operator/kube_client/base/time.h"
#include "tests/unit/operator/kube/job/refused_job_rig.h"

// What the API refuses of jobs that nobody leads, or leads any more, and of their status.
namespace adamant::kube {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// --- Jobs that nobody leads

TEST_F(RefusedJobTest, ADeletionThatIsRefusedWhenAJobsTimeIsOverIsAnEvent) {
  LeadTwoServers();
  const Json ended = {
      {"status", {{"phase", "Succeeded"}, {"completionTime", FormatTime(clock_.WallNow())}}}};
  client_.Patch(kTrainingJobs, kJob.key, PatchType::kMerge, ended, "status").IgnoreError();
  Json job = client_.Get(kTrainingJobs, kJob.key).value();
  job["spec"]["runPolicy"]["ttlAfterFinished"] = "1s";
  const auto view = ParseJobObject(client_.Update(kTrainingJobs, job).value());
  clock_.Advance(seconds(2));
  Refuse({"", "DELETE", "/trainingjobs", 403, "admission webhook \"keeper\" denied the request"});
  JobReconcilers reconcilers(context_, [](const std::string&) {});
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(reconcilers.Work(view, {}).ok());
    clock_.Advance(seconds(1));
  }
  events_.Step();
  EXPECT_THAT(Warnings(),
              ElementsAre("FailedDelete: cannot delete the job, whose time after its end is over: "
                          "admission webhook \"keeper\" denied the request"));
  server_.SetAnswers(nullptr);
  EXPECT_TRUE(reconcilers.Work(view, {}).ok());
  EXPECT_FALSE(client_.Get(kTrainingJobs, kJob.key).ok());
}

TEST_F(RefusedJobTest, AnInvalidJobWhoseStatusMayNotBeWrittenIsAnEvent) {
  client_.Create(kTrainingJobs, JobObject({{"model", {{"reference", "no-such"}}}})).IgnoreError();
  Refuse({"", "PATCH", "/status", 403, "trainingjobs/status is forbidden"});
  JobReconcilers reconcilers(context_, [](const std::string&) {});
  const auto view = ParseJobObject(client_.Get(kTrainingJobs, kJob.key).value());
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(reconcilers.Work(view, {}).ok());
    clock_.Advance(seconds(1));
  }
  events_.Step();
  EXPECT_THAT(
      Warnings(),
      ElementsAre(HasSubstr("FailedUpdate: cannot update the status: trainingjobs/status")));
}

// --- A job that is lost

TEST_F(RefusedJobTest, AJobWhoseStateIsGoneSaysSoThoughItsPodsMayNotBeDeleted) {
  LeadTwoServers();
  Work();
  SetNode("node1", "True");
  RunOn("node1", "mnist-worker-0-1");
  const Json damage = {{"data", {{"version", nullptr}}}};
  ASSERT_TRUE(
      client_.Patch(kConfigMaps, {kJob.key.ns, "mnist-state"}, PatchType::kMerge, damage).ok());
  Refuse({"", "DELETE", "/pods", 403, "admission webhook \"keeper\" denied the request"});
  LeadTwoServers();
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(reconciler_->Work(view_, Objects()).ok());
    view_ = ParseJobObject(client_.Get(kTrainingJobs, kJob.key).value());
    clock_.Advance(seconds(1));
  }
  EXPECT_EQ(StringAt(Status(), {"phase"}), "Failed");
  EXPECT_THAT(StringAt(Status(), {"message"}), HasSubstr("team/mnist-state has no version"));
  EXPECT_THAT(WriteFailure(), HasSubstr("cannot delete pod mnist-worker-0-1: admission webhook"));
  EXPECT_FALSE(reconciler_->done());
  server_.SetAnswers(nullptr);
  ASSERT_TRUE(reconciler_->Work(view_, Objects()).ok());
  EXPECT_TRUE(IsBeingDeleted("mnist-worker-0-1"));
  EXPECT_EQ(WriteFailure(), "");
}

// --- A status that is not valid

TEST_F(RefusedJobTest, AStatusThatIsNotValidIsWrittenWithWhatMatters) {
  server_.SetAnswers([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method != "PATCH" || request.body.find("\"roles\"") == std::string::npos) {
      return std::nullopt;
    }
    const Json status = {{"kind", "Status"}, {"code", 422}, {"message", "status.roles: no"}};
    return HttpResponse{.status = 422, .headers = {}, .body = status.dump()};
  });
  LeadTwoServers();
  WorkForTenSeconds();
  EXPECT_EQ(StringAt(Status(), {"phase"}), "Starting");
  EXPECT_FALSE(StringAt(Status(), {"startTime"}).empty());
  EXPECT_THAT(Status()["conditions"], SizeIs(testing::Ge(4u)));
  EXPECT_FALSE(Status().contains("roles"));
  EXPECT_THAT(Warnings(),
              ElementsAre("StatusRefused: the API refuses part of the job's status, which is "
                          "written without it: status.roles: no"));
}

TEST_F(RefusedJobTest, AnInvalidJobWhoseStatusIsRefusedIsRejectedAllTheSame) {
  client_.Create(kTrainingJobs, JobObject({{"model", {{"reference", "no-such"}}}})).IgnoreError();
  bool refused = false;
  server_.SetAnswers([&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method != "PATCH" || std::exchange(refused, true)) {
      return std::nullopt;
    }
    return HttpResponse{
        .status = 422, .headers = {}, .body = R"({"kind":"Status","message":"no"})"};
  });
  JobReconcilers reconcilers(context_, [](const std::string&) {});
  const auto view = ParseJobObject(client_.Get(kTrainingJobs, kJob.key).value());
  ASSERT_TRUE(reconcilers.Work(view, {}).ok());
  EXPECT_EQ(StringAt(Status(), {"phase"}), "Failed");
  events_.Step();
  EXPECT_THAT(Warnings(), Contains(HasSubstr("StatusRefused")));
}

}  // namespace
}  // namespace adamant::kube
