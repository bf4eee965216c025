#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/cli/kubectl/explain/explain.h"
#include "operator/kube_client/base/time.h"
#include "tests/unit/operator/cli/kubectl/explain/explain_rig.h"
#include "tests/unit/operator/cli/kubectl/job_rig.h"

namespace adamant::kubectl {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// --- What the API refuses

TEST(ExplainRefusalsTest, WhatTheApiRefusesIsToldWithWhatToDo) {
  struct Case {
    std::string words;
    std::string advice;
  };
  const std::vector<Case> cases = {
      {"exceeded quota: small, requested: pods=1", "free what the quota counts"},
      {"failed quota: compute: must specify limits.cpu", "ask for what the quota or LimitRange"},
      {"maximum memory usage per Container is 1Gi", "ask for what the quota or LimitRange"},
      {"no PriorityClass with name high was found", "kubectl get priorityclass"},
      {"Pod team/a exists and is of no TrainingJob", "delete what has the name"},
      {"ShardMap team/a is of the TrainingJob b", "delete what has the name"},
      {"admission webhook \"a\" denied the request", "ask who runs the webhook"},
      {"violates PodSecurity \"restricted:latest\"", "beyond what the namespace allows"},
      {"there is no claim out in namespace team", "make the claim that the job names"},
      {"unable to create new content", "tries again by itself"}};
  for (const Case& refusal : cases) {
    Json job = TheJob("Starting");
    const std::string message = "cannot create pod worker-0: " + refusal.words;
    job["status"]["message"] = message;
    job["status"]["roles"] = {{"worker", {{"desired", 1}, {"pods", 0}}}};
    job["status"]["conditions"] = Json::array({Condition("WriteFailure", "True", message)});
    const std::string text = Explained(At(job));
    EXPECT_THAT(text,
                StartsWith("mnist waits in phase Starting\n  because 1 pod is not made yet\n    "
                           "because " +
                           message + "\n\n"));
    EXPECT_THAT(text, HasSubstr(refusal.advice)) << refusal.words;
  }
}

TEST(ExplainRefusalsTest, ARequestWithoutAnAnswerIsToldWithWhatToDo) {
  Json job = TheJob("Starting");
  const std::string message =
      "cannot create pod worker-0: no answer from the API server since 2026-01-31T12:00:00Z";
  job["status"]["conditions"] = Json::array({Condition("WriteFailure", "True", message)});
  job["status"]["conditions"][0]["reason"] = "UnansweredCreate";
  const std::string text = Explained(At(job));
  EXPECT_THAT(text, HasSubstr("because " + message + "\n"));
  EXPECT_THAT(text, HasSubstr("kubectl get validatingwebhookconfigurations"));
}

TEST(ExplainRefusalsTest, ARefusalOfARunningJobIsToldToo) {
  Json job = TheJob("Running");
  job["status"]["conditions"] =
      Json::array({Condition("WriteFailure", "True", "cannot create disruption budget b: no")});
  EXPECT_THAT(Explained(At(job, {ThePod("worker", 0)})),
              HasSubstr("because its operator cannot do what it should\n      because cannot "
                        "create disruption budget b: no\n"));
}

TEST(ExplainRefusalsTest, AModelThatCannotBeWrittenIsToldWithWhatToDo) {
  Json job = TheJob("Evaluating");
  const std::string message =
      "cannot write the model to claim out: its pod mnist-export-7 exited with code 1: disk full";
  job["status"]["conditions"] = Json::array({Condition("WriteFailure", "True", message)});
  const std::string text = Explained(At(job, {ThePod("worker", 0)}));
  EXPECT_THAT(text, HasSubstr("because " + message + "\n"));
  EXPECT_THAT(text, HasSubstr("can be written by the pod's user, 65532"));
}

TEST(ExplainRefusalsTest, AnExportThatCannotRunIsNamed) {
  Json pod = Pending("Unschedulable", "persistentvolumeclaim \"out\" not found");
  pod["metadata"]["name"] = "mnist-export-7";
  pod["metadata"]["labels"] = {
      {kube::kJobLabel, "mnist"}, {kube::kJobUidLabel, "u1"}, {"adamant.dev/export", "7"}};
  EXPECT_THAT(Explained(At(TheJob("Evaluating"), {ThePod("worker", 0), pod})),
              HasSubstr("export-7 (pod mnist-export-7) cannot be scheduled\n      because "
                        "persistentvolumeclaim \"out\" not found"));
}

// --- Who leads

Json Lease(const std::string& server, const std::string& renewed) {
  return {{"metadata", {{"namespace", "training"}}},
          {"spec", {{"holderIdentity", server}, {"renewTime", renewed}}}};
}

TEST(ExplainRefusalsTest, WhereNoOperatorLeadsWhatIsToldIsSaidToBeOld) {
  Observed observed = At(TheJob("Running"), {ThePod("worker", 0)});
  observed.lease = Lease("a", "2026-01-31T12:01:58.000000Z");
  EXPECT_THAT(Explained(observed), Not(HasSubstr("no operator")));
  observed.lease = Lease("a", "2026-01-31T12:01:03.000000Z");
  const std::string text = Explained(observed);
  EXPECT_THAT(text,
              HasSubstr("because this is as it was last told: no operator leads: its lease in "
                        "namespace training was last renewed 57s ago"));
  EXPECT_THAT(text, HasSubstr("kubectl -n training get pods"));
  observed.lease = Lease("", "2026-01-31T12:01:58.000000Z");
  EXPECT_THAT(Explained(observed), HasSubstr("no operator leads"));
}

TEST(ExplainRefusalsTest, ALeaseThatIsNotThereIsToldAtOnce) {
  for (const char* phase : {"", "Running"}) {
    Json job = TheJob(phase);
    if (!job["status"].is_null()) {
      job["status"]["lastReportTime"] = "2026-01-31T12:01:58Z";
    }
    Observed observed = At(job, {ThePod("worker", 0)});
    observed.lease = Json::object();
    const std::string text = Explained(observed);
    EXPECT_THAT(text,
                HasSubstr("no operator leads in namespace adamant-system: its lease is not there"));
    EXPECT_THAT(text, HasSubstr("kubectl -n adamant-system get pods"));
  }
}

TEST(ExplainRefusalsTest, WhoMayNotReadTheLeaseIsToldOfAnOldReport) {
  Json job = TheJob("Running");
  job["status"]["lastReportTime"] = "2026-01-31T12:01:00Z";
  EXPECT_THAT(Explained(At(job, {ThePod("worker", 0)})), Not(HasSubstr("no operator")));
  Observed observed = At(job, {ThePod("worker", 0)});
  observed.now = *kube::ParseTime("2026-01-31T12:03:00Z");
  EXPECT_THAT(Explained(observed), HasSubstr("no operator has reported for 2m00s"));
  observed.job["status"]["phase"] = "Suspended";
  EXPECT_THAT(Explained(observed), Not(HasSubstr("no operator")));
}

TEST(ExplainRefusalsTest, TheLastLineThatTellsIsShown) {
  LastLine last;
  last.Add(R"({"time":"t","level":"info","message":"plan"})");
  EXPECT_THAT(last.text(), HasSubstr("plan")) << "there is no better one";
  last.Add("terminate called after throwing an instance of 'std::bad_alloc'");
  last.Add(R"({"time":"t","level":"info","message":"kernels"})");
  last.Add("");
  EXPECT_THAT(last.text(), StartsWith("terminate called"));
  last.Add(R"({"time":"t","level":"error","message":"failed"})");
  EXPECT_THAT(last.text(), HasSubstr("failed"));
}

}  // namespace
}  // namespace adamant::kubectl
