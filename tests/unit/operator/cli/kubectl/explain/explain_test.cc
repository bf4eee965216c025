#include "operator/cli/kubectl/explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "operator/kube_client/base/time.h"
#include "tests/unit/operator/cli/kubectl/explain/explain_rig.h"
#include "tests/unit/operator/cli/kubectl/job_rig.h"

namespace adamant::kubectl {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(ExplainTest, SaysThatNoOperatorIsThere) {
  const std::string text = Explained(At(TheJob("")));
  EXPECT_THAT(text, StartsWith("mnist waits, for 2m00s\n  because no operator has looked at it"));
  EXPECT_THAT(text, HasSubstr("kubectl -n adamant-system get pods"));
}

TEST(ExplainTest, AYoungJobThatNobodyHasSeenIsNoTrouble) {
  Observed observed = At(TheJob(""));
  observed.now = *kube::ParseTime("2026-01-31T12:00:02Z");
  EXPECT_TRUE(Explain(observed).advice.empty());
}

TEST(ExplainTest, ARefusedSpecIsToldFieldByField) {
  Json job = TheJob("Failed");
  job["status"]["conditions"] =
      Json::array({Condition("Valid", "False", "spec.a: no\nspec.b: neither")});
  EXPECT_EQ(Explained(At(job)),
            "mnist is refused\n"
            "  because its spec is not valid\n"
            "    because spec.a: no\n"
            "    because spec.b: neither\n"
            "\nwhat to do:\n"
            "  - delete it, correct these fields in its manifest and apply that; `adamant "
            "validate` finds "
            "them before\n");
}

TEST(ExplainTest, ARefusedChangeIsToldWhileTheJobRuns) {
  Json job = TheJob("Running");
  job["status"]["conditions"] = Json::array({Condition("Valid", "False", "spec.a: no")});
  const std::string text = Explained(At(job, {ThePod("worker", 0)}));
  EXPECT_THAT(text, StartsWith("mnist runs"));
  EXPECT_THAT(text,
              HasSubstr("because its last change is refused, it goes on as it was\n    "
                        "because spec.a: no"));
}

TEST(ExplainTest, ASuspendedJobSaysHowItGoesOn) {
  Json job = TheJob("Suspended");
  job["status"]["conditions"] =
      Json::array({Condition("Suspended", "True", "spec.runPolicy.suspend is true")});
  const std::string text = Explained(At(job));
  EXPECT_THAT(text, HasSubstr("because spec.runPolicy.suspend is true"));
  EXPECT_THAT(text, HasSubstr("kubectl patch trainingjob mnist -n training"));
}

TEST(ExplainTest, AQueuedJobWaitsForItsQueue) {
  Json job = TheJob("Suspended");
  job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "gpus";
  EXPECT_THAT(Explained(At(job)), HasSubstr("the queue gpus has not admitted it"));
}

TEST(ExplainTest, APodWithoutRoomLeadsToTheSchedulersWord) {
  const std::string text =
      Explained(At(TheJob("Starting"),
                   {ThePod("worker", 0),
                    Pending("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")}));
  EXPECT_THAT(text,
              StartsWith("mnist waits in phase Starting\n"
                         "  because worker-1 (pod mnist-worker-1-1) cannot be scheduled\n"
                         "    because 0/3 nodes are available: 3 Insufficient cpu.\n"));
  EXPECT_THAT(text, HasSubstr("ask for less"));
  EXPECT_THAT(text, Not(HasSubstr("worker-0"))) << "it runs";
}

TEST(ExplainTest, TaintsAndAffinityHaveAdviceOfTheirOwn) {
  EXPECT_THAT(Explained(At(TheJob("Starting"),
                           {Pending("Unschedulable", "1 node(s) had untolerated taint {a: b}")})),
              HasSubstr("add tolerations"));
  EXPECT_THAT(Explained(At(TheJob("Starting"),
                           {Pending("Unschedulable",
                                    "0/3 nodes are available: 3 node(s) were unschedulable.")})),
              HasSubstr("kubectl uncordon NODE"));
  EXPECT_THAT(
      Explained(At(TheJob("Starting"),
                   {Pending("Unschedulable", "didn't match Pod's node affinity/selector")})),
      HasSubstr("nodeSelector"));
}

TEST(ExplainTest, AGatedPodWaitsForItsGates) {
  EXPECT_THAT(
      Explained(At(TheJob("Starting"), {Pending("SchedulingGated", "Scheduling is blocked")})),
      HasSubstr("may not be scheduled yet"));
}

TEST(ExplainTest, AGatedPodOfAQueueLeadsToWhatTheQueueSays) {
  Json pod = Pending("SchedulingGated", "Scheduling is blocked");
  pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "research";
  std::string text = Explained(At(TheJob("Starting"), {pod}));
  EXPECT_THAT(text, HasSubstr("the queue research has not admitted it\n"));
  EXPECT_THAT(text, HasSubstr("kubectl describe localqueue research -n training"));
  pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] = "uid-1";
  text = Explained(At(TheJob("Starting"), {pod}));
  EXPECT_THAT(text, HasSubstr("the queue research has not admitted its pod group\n"));
  EXPECT_THAT(text, HasSubstr("kubectl describe workload uid-1 -n training"));
}

TEST(ExplainTest, AnUnboundClaimIsACauseWithTheProvisionersWord) {
  Json pod = Pending("Unschedulable", "pod has unbound immediate PersistentVolumeClaims");
  pod["spec"]["volumes"] =
      Json::array({{{"persistentVolumeClaim", {{"claimName", "mnist-parameter-server-1"}}}}});
  Observed observed = At(TheJob("Starting"), {pod});
  const Json claim = {{"metadata", {{"name", "mnist-parameter-server-1"}, {"uid", "c1"}}}};
  observed.claims = {claim};
  observed.events = {EventOf(
      claim, "PersistentVolumeClaim", "ProvisioningFailed", "storageclass \"fast\" not found")};
  const std::string text = Explained(observed);
  EXPECT_THAT(text,
              HasSubstr("because its claim mnist-parameter-server-1 has no volume\n      because "
                        "storageclass \"fast\" not found"));
  EXPECT_THAT(text, HasSubstr("kubectl get storageclass"));
}

Json WithoutItsClaim(const std::string& claim) {
  Json pod = Pending("Unschedulable", "persistentvolumeclaim \"" + claim + "\" not found");
  pod["spec"]["volumes"] =
      Json::array({{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", claim}}}}});
  return pod;
}

TEST(ExplainTest, AClaimThatTheJobNamesAndIsMissingIsTheUsersToMake) {
  Json job = TheJob("Starting");
  job["spec"]["data"]["train"]["idx"]["claim"] = "digits";
  EXPECT_THAT(Explained(At(job, {WithoutItsClaim("digits")})),
              HasSubstr("make the claim that the job names, or correct its name"));
}

TEST(ExplainTest, ADeletedClaimThatTheOperatorHadMadeIsNotTheUsersToMake) {
  for (const std::string& end : {std::string("not found"), std::string("is being deleted")}) {
    Json pod = WithoutItsClaim("mnist-parameter-server-0-1");
    pod["status"]["conditions"][0]["message"] =
        "persistentvolumeclaim \"mnist-parameter-server-0-1\" " + end;
    const std::string text = Explained(At(TheJob("Running"), {pod}));
    EXPECT_THAT(text, Not(HasSubstr("make the claim")));
    EXPECT_THAT(text,
                HasSubstr("wait: claim mnist-parameter-server-0-1 is the operator's to make"));
  }
}

TEST(ExplainTest, AnImageThatCannotBePulledIsNamed) {
  for (const char* reason : {"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull"}) {
    const std::string text = Explained(
        At(TheJob("Starting"), {Waiting(ThePod("worker", 0), reason, "no such manifest")}));
    EXPECT_THAT(text, HasSubstr("does not get its image adamant:1 (" + std::string(reason) + ")"));
    EXPECT_THAT(text, HasSubstr("because no such manifest"));
    EXPECT_THAT(text, HasSubstr("bring the image adamant:1 to the nodes"));
  }
}

TEST(ExplainTest, AContainerThatCannotBeMadeIsTheTemplatesFault) {
  EXPECT_THAT(
      Explained(At(
          TheJob("Starting"),
          {Waiting(ThePod("worker", 0), "CreateContainerConfigError", "secret \"s\" not found")})),
      HasSubstr("cannot start its container (CreateContainerConfigError)\n    because "
                "secret \"s\" not found"));
}

TEST(ExplainTest, AVolumeThatCannotBeMountedIsFoundInEvents) {
  const Json pod = Waiting(ThePod("worker", 0), "ContainerCreating", "");
  Observed observed = At(TheJob("Starting"), {pod});
  observed.events = {EventOf(pod, "Pod", "FailedMount", "timed out")};
  EXPECT_THAT(Explained(observed),
              HasSubstr("cannot be set up by its node\n    because timed out"));
}

TEST(ExplainTest, APodThatIsBeingStartedIsNoTroubleAtFirst) {
  Observed observed =
      At(TheJob("Starting"), {Waiting(ThePod("worker", 0), "ContainerCreating", "")});
  observed.now = *kube::ParseTime("2026-01-31T12:00:05Z");
  const Explanation explanation = Explain(observed);
  EXPECT_THAT(ExplanationText(explanation), HasSubstr("is being started, for 5.0s"));
  EXPECT_TRUE(explanation.advice.empty());
}

TEST(ExplainTest, MissingPodsLeadToTheQuotaThatIsUsedUp) {
  Json job = TheJob("Starting");
  job["status"]["roles"] = {{"worker", {{"desired", 3}}}};
  Observed observed = At(job, {ThePod("worker", 0)});
  observed.quotas = {{{"metadata", {{"name", "team"}}},
                      {"status",
                       {{"hard", {{"pods", "5"}, {"requests.cpu", "8"}}},
                        {"used", {{"pods", "5"}, {"requests.cpu", "2"}}}}}}};
  EXPECT_THAT(Explained(observed),
              HasSubstr("because 2 pods are not made yet\n    because the quota team of the "
                        "namespace is used up: pods 5 of 5"));
}

TEST(ExplainTest, PodsThatRunAndHaveNotJoinedPointToTheNetwork) {
  Json job = TheJob("Starting");
  job["status"]["roles"] = {{"worker", {{"desired", 1}, {"pods", 1}, {"ready", 0}}}};
  const std::string text = Explained(At(job, {ThePod("worker", 0)}));
  EXPECT_THAT(text, HasSubstr("0 of 1 pods of role worker have joined the job"));
  EXPECT_THAT(text, HasSubstr("port 7070"));
}

TEST(ExplainTest, NobodyLooksForNetworkPoliciesWhileAnotherOperatorHasJustBegunToLead) {
  Json job = TheJob("Running");
  job["status"]["roles"] = {{"worker", {{"desired", 1}, {"pods", 1}, {"ready", 0}}}};
  Observed observed = At(job, {ThePod("worker", 0)});
  observed.lease = {{"spec",
                     {{"holderIdentity", "b"},
                      {"acquireTime", "2026-01-31T12:01:50.000000Z"},
                      {"renewTime", "2026-01-31T12:01:58.000000Z"}}}};
  const std::string text = Explained(observed);
  EXPECT_THAT(text, HasSubstr("wait: another operator leads for 10s"));
  EXPECT_THAT(text, Not(HasSubstr("network policies")));
}

TEST(ExplainTest, AFailedJobSaysHowToBeginAnewAndWhatGoesWithIt) {
  EXPECT_THAT(
      Explained(At(TheJob("Failed"))),
      HasSubstr(
          "  - once that is put right, start it anew: kubectl delete trainingjob "
          "mnist -n training (its claims, with the checkpoints on them, go with it), and apply "
          "its manifest again; or leave it, and apply the manifest under another "
          "metadata.name\n"));
}

TEST(ExplainTest, AFailureLeadsOverTheLostProcessToItsLastWords) {
  Json job = TheJob("Failed");
  job["status"]["message"] = "the restart budget of 3 is spent";
  job["status"]["completionTime"] = "2026-01-31T12:01:30Z";
  const Json pod = Ended(ThePod("worker", 0, 4), 1);
  Observed observed = At(job, {pod});
  observed.events = {
      EventOf(job, "TrainingJob", "lost", "worker-0 exited with code 1", "2026-01-31T12:00:20Z"),
      EventOf(job, "TrainingJob", "lost", "worker-0 exited with code 1", "2026-01-31T12:01:20Z")};
  observed.last_lines["mnist-worker-0-4"] = "cannot open /dev/foo";
  const std::string text = Explained(observed);
  EXPECT_THAT(text,
              StartsWith("mnist failed, 30s ago\n"
                         "  because the restart budget of 3 is spent\n"
                         "    because worker-0 exited with code 1, 40s ago\n"
                         "      because it said last: cannot open /dev/foo\n"
                         "    because worker-0 exited with code 1, 1m40s ago\n"));
  EXPECT_THAT(text, HasSubstr("kubectl adamant logs mnist worker-0 -n training"));
  EXPECT_THAT(text, HasSubstr("kubectl delete trainingjob mnist"));
}

TEST(ExplainTest, ADeadlineThatIsOverIsToBeRaised) {
  Json job = TheJob("Failed");
  job["status"]["message"] = "its words do not matter";
  job["status"]["conditions"] = Json::array({Condition("Failed", "True", "")});
  EXPECT_THAT(Explained(At(job)), Not(HasSubstr("raise the deadline")));
  job["status"]["conditions"][0]["reason"] = "DeadlineExceeded";
  EXPECT_THAT(Explained(At(job)), HasSubstr("raise the deadline that its message names"));
}

TEST(ExplainTest, WhenEventsAreForgottenTheFailedPodsStillTell) {
  Json job = TheJob("Failed");
  job["status"]["message"] = "the restart budget of 0 is spent";
  const std::string text =
      Explained(At(job, {Ended(ThePod("parameter-server", 2), 137, "OOMKilled")}));
  EXPECT_THAT(
      text,
      HasSubstr("parameter-server-2 (pod mnist-parameter-server-2-1 on node1) was killed because "
                "it used more memory than its limit (OOMKilled)"));
  EXPECT_THAT(text, HasSubstr("resources.limits.memory"));
}

TEST(ExplainTest, SignalsAndBadConfigurationsAreTold) {
  Json job = TheJob("Failed");
  EXPECT_THAT(Explained(At(job, {Ended(ThePod("worker", 0), 139)})),
              HasSubstr("was killed by signal 11"));
  EXPECT_THAT(Explained(At(job, {Ended(ThePod("worker", 0), 2)})),
              HasSubstr("another start would end the same way"));
}

TEST(ExplainTest, AnEvictedPodSaysWhatItsNodeLacked) {
  Json pod = ThePod("worker", 0);
  pod["status"] = {{"phase", "Failed"},
                   {"reason", "Evicted"},
                   {"message", "The node was low on resource: memory."}};
  const std::string text = Explained(At(TheJob("Running"), {pod}));
  EXPECT_THAT(text,
              HasSubstr("was ended by its node node1 (Evicted)\n      because The node was low on "
                        "resource: memory."));
}

TEST(ExplainTest, ALostNodeIsNamedWithTheTime) {
  Observed observed = At(TheJob("Running"), {ThePod("worker", 0)});
  observed.nodes = {{{"metadata", {{"name", "node1"}}},
                     {"status",
                      {{"conditions",
                        Json::array({{{"type", "Ready"},
                                      {"status", "Unknown"},
                                      {"message", "Kubelet stopped posting node status."},
                                      {"lastTransitionTime", "2026-01-31T12:01:15Z"}}})}}}}};
  const std::string text = Explained(observed);
  EXPECT_THAT(text, HasSubstr("is on node node1, which is lost for 45s\n      because Kubelet"));
  EXPECT_THAT(text, HasSubstr("kubectl delete node node1"));
}

TEST(ExplainTest, RestartsAreToldByRoleAndCause) {
  for (const char* phase : {"Running", "Succeeded", "Failed"}) {
    Json job = TheJob(phase);
    job["status"]["roles"]["worker"]["restarts"] = 3;
    job["status"]["roles"]["worker"]["restartCauses"] = {{"outOfMemory", 2}, {"evicted", 1}};
    job["status"]["roles"]["parameterServer"]["restarts"] = 1;
    EXPECT_THAT(Explained(At(job, {})),
                HasSubstr("because its processes were started again in all: "
                          "worker 3 (2 OutOfMemory, 1 Evicted), parameter-server 1\n"));
  }
}

TEST(ExplainTest, ARunningJobWithoutTroubleJustRuns) {
  Json job = TheJob("Running");
  job["status"].update({{"epoch", 2}, {"epochs", 5}, {"examplesPerSecond", 3000}});
  EXPECT_EQ(Explained(At(job, {ThePod("worker", 0)})),
            "mnist runs: epoch 2 of 5, 3000 examples/s\n");
}

TEST(ExplainTest, ServersThatShareANodeAreToldWhereThereAreCopies) {
  Json job = TheJob("Running");
  const std::vector<Json> pods = {ThePod("parameter-server", 0), ThePod("parameter-server", 1)};
  EXPECT_THAT(Explained(At(job, pods)), Not(HasSubstr("share")));
  job["spec"]["distribution"]["parameterServers"]["copies"] = 2;
  EXPECT_THAT(Explained(At(job, pods)),
              HasSubstr("because 2 parameter servers share node node1, from parameter-server-0 to "
                        "parameter-server-1"));
}

TEST(ExplainTest, AServerThatWaitsForTheNodeOfItsVolumeNamesIt) {
  Json pod = Pending("Unschedulable", "0/3 nodes are available: 1 node(s) were unschedulable");
  pod["spec"]["volumes"] =
      Json::array({{{"persistentVolumeClaim", {{"claimName", "mnist-parameter-server-1"}}}}});
  Observed observed = At(TheJob("Running"), {pod});
  Json claim = {{"metadata", {{"name", "mnist-parameter-server-1"}, {"uid", "c1"}}},
                {"status", {{"phase", "Bound"}}}};
  claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "node2";
  observed.claims = {claim};
  EXPECT_THAT(Explained(observed),
              HasSubstr("because its claim mnist-parameter-server-1 was made for node node2"));
}

TEST(ExplainTest, AnAttemptOfARunningJobIsTold) {
  Json job = TheJob("Running");
  job["status"]["attempt"] = 2;
  job["status"]["conditions"] =
      Json::array({Condition("Diverged", "True", "training diverged in epoch 3: the loss")});
  EXPECT_THAT(Explained(At(job, {ThePod("worker", 0)})),
              HasSubstr("because it is at attempt 2 of training\n"
                        "    because training diverged in epoch 3: the loss\n"));
}

TEST(ExplainTest, RestartsOfARunningJobAreTold) {
  Json job = TheJob("Running");
  Observed observed =
      At(job, {Ended(ThePod("worker", 0, 1), 137, "OOMKilled"), ThePod("worker", 0, 2)});
  observed.events = {EventOf(job,
                             "TrainingJob",
                             "Lost",
                             "worker-0 was killed by signal 9 as memory ran out (OOMKilled)",
                             "2026-01-31T12:01:50Z")};
  const std::string text = Explained(observed);
  EXPECT_THAT(text,
              HasSubstr("processes were lost and started again\n    because worker-0 was "
                        "killed by signal 9 as memory ran out (OOMKilled), 10s ago"));
  EXPECT_THAT(text, HasSubstr("resources.limits.memory"));
}

TEST(ExplainTest, SuccessPointsToTheModel) {
  EXPECT_EQ(Explained(At(TheJob("Succeeded"))),
            "mnist succeeded\n\nwhat to do:\n  - bring its model here: kubectl adamant export "
            "mnist -n training\n");
}

TEST(ExplainTest, SuccessComesWithItsReservations) {
  Json job = TheJob("Succeeded");
  job["status"]["message"] = "epoch 2 was the best";
  EXPECT_THAT(Explained(At(job)), HasSubstr("mnist succeeded; epoch 2 was the best\n"));
}

TEST(ExplainTest, ADeletionNamesWhatHoldsItUp) {
  Json job = TheJob("Running");
  job["metadata"]["deletionTimestamp"] = "2026-01-31T12:01:00Z";
  job["metadata"]["finalizers"] = {"foregroundDeletion"};
  Json pod = ThePod("worker", 0);
  pod["metadata"]["deletionTimestamp"] = "2026-01-31T12:01:00Z";
  const std::string text = Explained(At(job, {pod}));
  EXPECT_THAT(text, StartsWith("mnist is being deleted, for 1m00s\n"));
  EXPECT_THAT(text, HasSubstr("its finalizer \"foregroundDeletion\" is not done"));
  EXPECT_THAT(text, HasSubstr("worker-0 (pod mnist-worker-0-1 on node1) is being deleted"));
}

TEST(ExplainTest, TheSameAdviceIsGivenOnce) {
  const Explanation explanation = Explain(At(TheJob("Starting"),
                                             {Waiting(ThePod("worker", 0), "ErrImagePull", "no"),
                                              Waiting(ThePod("worker", 1), "ErrImagePull", "no")}));
  EXPECT_EQ(explanation.advice.size(), 1u);
}

TEST(ExplainTest, AsJsonItIsATree) {
  const Json json = Json::parse(ExplanationJson(Explain(At(TheJob("Succeeded")))));
  EXPECT_EQ(json["text"], "mnist succeeded");
  EXPECT_TRUE(json["because"].empty());
  EXPECT_EQ(json["advice"].size(), 1u);
}

TEST(ExplainTest, ObjectsOfAnyShapeAreSurvived) {
  for (const char* text : {"{}",
                           "[]",
                           "null",
                           R"({"status": 5})",
                           R"({"status": {"phase": 7}})",
                           R"({"status": {"phase": "Failed", "conditions": [1, {"type": 2}]}})"}) {
    Observed observed = At(Json::parse(text), {Json::parse(text)});
    observed.events = observed.claims = observed.quotas = observed.nodes = {Json::parse(text)};
    EXPECT_FALSE(Explained(observed).empty());
  }
}

}  // namespace
}  // namespace adamant::kubectl
