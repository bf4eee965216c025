#include "operator/kube/api/failed_writes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/unit/operator/kube/job/refused_job_rig.h"

// What the API refuses, and how its user hears of it.
namespace adamant::kube {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const absl::Status kQuota =
    absl::PermissionDeniedError("POST /api/v1/namespaces/team/pods: exceeded quota: small");

const absl::Status kSilence = absl::DeadlineExceededError("no answer within 3 s");

class FailedWritesTest : public testing::Test {
 protected:
  std::vector<std::string> Lasting() const {
    std::vector<std::string> texts;
    for (const FailedWrites::Failure& failure : failed_.Lasting(clock_.Now())) {
      texts.push_back(failure.Text());
    }
    return texts;
  }

  void Note(const std::string& what, const absl::Status& status) {
    failed_.Note(what, status, clock_);
  }

  FakeClock clock_;
  FailedWrites failed_;
};

TEST_F(FailedWritesTest, WhatFailsForAWhileIsToldInTheApisWords) {
  Note("create pod worker-0", kQuota);
  EXPECT_THAT(Lasting(), IsEmpty());
  clock_.Advance(FailedWrites::kTimeout);
  Note("create pod worker-0", kQuota);
  EXPECT_THAT(Lasting(), ElementsAre("cannot create pod worker-0: exceeded quota: small"));
  EXPECT_EQ(failed_.Lasting(clock_.Now()).front().Reason(), "FailedCreate");
  Note("create pod worker-0", absl::OkStatus());
  EXPECT_THAT(Lasting(), IsEmpty());
}

TEST_F(FailedWritesTest, WhatIsNotWantedAnyMoreIsForgotten) {
  Note("update the status", kQuota);
  failed_.BeginPass();
  Note("create pod worker-1", kQuota);
  failed_.EndPass(true);
  clock_.Advance(FailedWrites::kTimeout);
  failed_.BeginPass();
  failed_.EndPass(false);
  EXPECT_THAT(Lasting(), SizeIs(2)) << "that one broke off";
  failed_.BeginPass();
  failed_.EndPass(true);
  EXPECT_THAT(Lasting(), ElementsAre("cannot update the status: exceeded quota: small"));
}

TEST_F(FailedWritesTest, AnApiThatDoesNotAnswerSaysNothingOfTheRequest) {
  Note("create pod worker-1",
       absl::UnavailableError("POST /api/v1/namespaces/team/pods: failed calling webhook"));
  clock_.Advance(seconds(1));
  Note("create pod worker-0", kSilence);
  clock_.Advance(FailedWrites::kTimeout);
  EXPECT_THAT(Lasting(), ElementsAre("cannot create pod worker-1: failed calling webhook"));
}

TEST_F(FailedWritesTest, WhatAloneHasNoAnswerIsTold) {
  Note("update the status", absl::OkStatus());
  clock_.Advance(seconds(1));
  Note("create pod worker-0", kSilence);
  clock_.Advance(seconds(60));
  EXPECT_TRUE(failed_.NeedsAnswer());
  failed_.NoteAnswer(clock_.Now());
  EXPECT_FALSE(failed_.NeedsAnswer());
  EXPECT_THAT(Lasting(), IsEmpty()) << "the API was away, for all that is known";
  clock_.Advance(FailedWrites::kTimeout);
  Note("create pod worker-0", kSilence);
  EXPECT_THAT(Lasting(),
              ElementsAre("cannot create pod worker-0: no answer from the API server since "
                          "1970-01-01T01:00:01Z, though it answers other requests: an admission "
                          "webhook may hang"));
  EXPECT_EQ(failed_.Lasting(clock_.Now()).front().Reason(), "UnansweredCreate");
  EXPECT_EQ(failed_.LastSilence("create pod worker-0"), clock_.Now());
  Note("create pod worker-0", absl::OkStatus());
  EXPECT_THAT(Lasting(), IsEmpty());
}

TEST_F(FailedWritesTest, AnOutageIsNotToldOfWhatIsAnsweredAfterIt) {
  Note("update the status", absl::OkStatus());
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(seconds(3));
    Note("create pod worker-0", kSilence);
    Note("update the status", kSilence);
    EXPECT_THAT(Lasting(), IsEmpty());
  }
  clock_.Advance(seconds(1));
  Note("update the status", absl::OkStatus());
  EXPECT_THAT(Lasting(), IsEmpty());
  Note("create pod worker-0", absl::OkStatus());
  clock_.Advance(seconds(60));
  EXPECT_THAT(Lasting(), IsEmpty());
}

TEST_F(FailedWritesTest, ARefusalThatTurnsToSilenceIsToldAsThat) {
  Note("create pod worker-0", kQuota);
  clock_.Advance(FailedWrites::kTimeout);
  Note("create pod worker-0", kSilence);
  EXPECT_THAT(Lasting(), ElementsAre(HasSubstr("exceeded quota")));
  failed_.NoteAnswer(clock_.Now());
  clock_.Advance(FailedWrites::kTimeout);
  EXPECT_THAT(Lasting(), ElementsAre(HasSubstr("no answer")));
  Note("create pod worker-0", kQuota);
  EXPECT_THAT(Lasting(), ElementsAre(HasSubstr("exceeded quota")));
}

TEST_F(FailedWritesTest, WhatDiffersInNumbersAloneIsNewsOnce) {
  EXPECT_TRUE(failed_.IsNews({.what = "create pod worker-0", .why = "used: pods=3"}));
  EXPECT_FALSE(failed_.IsNews({.what = "create pod worker-1", .why = "used: pods=2"}));
  EXPECT_TRUE(failed_.IsNews({.what = "create pod worker-0", .why = "no PriorityClass"}));
  failed_.EndPass(true);
  EXPECT_TRUE(failed_.IsNews({.what = "create pod worker-0", .why = "used: pods=3"}));
}

// --- Whole jobs

const Refusal kRefusals[] = {
    {"create pod data-server-0",
     "POST",
     "/pods",
     403,
     "pods \"mnist-data-server-0-1\" is forbidden: exceeded quota: small, requested: pods=1, used: "
     "pods=2, limited: pods=2"},
    {"create pod data-server-0",
     "POST",
     "/pods",
     403,
     "pods \"mnist-data-server-0-1\" is forbidden: failed quota: compute: must specify limits.cpu"},
    {"create pod data-server-0",
     "POST",
     "/pods",
     403,
     "pods \"mnist-data-server-0-1\" is forbidden: maximum memory usage per Container is 1Gi"},
    {"create pod data-server-0",
     "POST",
     "/pods",
     403,
     "pods \"mnist-data-server-0-1\" is forbidden: no PriorityClass with name high was found"},
    {"create pod data-server-0",
     "POST",
     "/pods",
     403,
     "admission webhook \"policy.example\" denied the request: images must be signed"},
    {"create pod data-server-0",
     "POST",
     "/pods",
     500,
     "Internal error occurred: failed calling webhook \"policy.example\": no endpoints"},
    {"create pod data-server-0",
     "POST",
     "/pods",
     403,
     "pods \"mnist-data-server-0-1\" is forbidden: violates PodSecurity \"restricted:latest\""},
    {"create pod data-server-0",
     "POST",
     "/pods",
     403,
     "pods \"mnist-data-server-0-1\" is forbidden: unable to create new content in namespace team "
     "because it is being terminated"},
    {"create pod data-server-0",
     "POST",
     "/pods",
     403,
     "pods \"mnist-data-server-0-1\" is forbidden: error looking up service account team/robot"},
    {"create pod parameter-server-0",
     "POST",
     "/persistentvolumeclaims",
     403,
     "persistentvolumeclaims \"mnist-parameter-server-0-1\" is forbidden: maximum storage usage "
     "per PersistentVolumeClaim is 32Mi, but request is 64Mi",
     "mnist-parameter-server-0-1"},
    {"create claim mnist-output",
     "POST",
     "/persistentvolumeclaims",
     403,
     "persistentvolumeclaims \"mnist-output\" is forbidden: exceeded quota: disks"},
    {"create disruption budget mnist-parameter-server",
     "POST",
     "/poddisruptionbudgets",
     403,
     "poddisruptionbudgets.policy is forbidden: User \"robot\" cannot create resource"},
    {"create disruption budget mnist-parameter-server",
     "POST",
     "/poddisruptionbudgets",
     422,
     "PodDisruptionBudget.policy \"mnist-parameter-server\" is invalid: spec.minAvailable"},
    {"update the job's state",
     "POST",
     "/configmaps",
     403,
     "configmaps \"mnist-state\" is forbidden: exceeded quota: objects"},
    {"read the job's state",
     "GET",
     "/configmaps/mnist-state",
     403,
     "configmaps \"mnist-state\" is forbidden: User \"robot\" cannot get resource"},
};

TEST_F(RefusedJobTest, EachRefusalReachesTheUserInTheApisWords) {
  for (const Refusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.message);
    client_.Delete(kTrainingJobs, kJob.key).IgnoreError();
    server_.CollectGarbage();
    LeadTwoServers();
    Refuse(refusal);
    WorkForTenSeconds();
    const std::string text = "cannot " + std::string(refusal.what) + ": " + refusal.message;
    EXPECT_EQ(StringAt(Status(), {"message"}), text);
    EXPECT_THAT(WriteFailure(), HasSubstr("True " + text));
    EXPECT_THAT(Warnings(), Contains(AllOf(HasSubstr("Failed"), HasSubstr(text))));
    EXPECT_FALSE(StringAt(Status(), {"phase"}).empty());
    server_.SetAnswers(nullptr);
    WorkForTenSeconds();
    EXPECT_EQ(WriteFailure(), "") << "it is put right";
    EXPECT_EQ(StringAt(Status(), {"message"}), "");
  }
}

TEST_F(RefusedJobTest, ManyRefusalsOfOneKindAreOneEvent) {
  Lead({{"distribution", {{"workers", 8}, {"parameterServers", {{"count", 3}}}}}});
  Refuse({"", "POST", "/pods", 403, "exceeded quota: small"});
  WorkForTenSeconds();
  EXPECT_THAT(Warnings(), Contains(HasSubstr("create pod worker-")).Times(1));
  EXPECT_THAT(WriteFailure(), HasSubstr("\nand 7 more"));
}

TEST_F(RefusedJobTest, ATakenNameIsNamed) {
  Take(kPods, "mnist-worker-0-1");
  Take(kPersistentVolumeClaims, "mnist-parameter-server-1-1");
  LeadTwoServers();
  WorkForTenSeconds();
  EXPECT_THAT(
      WriteFailure(),
      HasSubstr(
          "cannot create pod worker-0: Pod team/mnist-worker-0-1 exists and is of no TrainingJob"));
  EXPECT_THAT(WriteFailure(),
              HasSubstr("cannot create pod parameter-server-1: PersistentVolumeClaim "
                        "team/mnist-parameter-server-1-1 exists"));
  EXPECT_THAT(Names(kPods), Contains("mnist-parameter-server-0-1")) << "the others are made";
}

TEST_F(RefusedJobTest, ATakenConfigMapIsToldThoughNothingCanBegin) {
  Take(kConfigMaps, "mnist-state");
  LeadTwoServers();
  WorkForTenSeconds();
  EXPECT_EQ(StringAt(Status(), {"phase"}), "Pending");
  EXPECT_THAT(
      StringAt(Status(), {"message"}),
      HasSubstr("cannot read the job's state: ConfigMap team/mnist-state exists and is of no "
                "TrainingJob"));
  EXPECT_THAT(Warnings(), Contains(HasSubstr("FailedRead: cannot read the job's state")));
  EXPECT_THAT(Names(kPods), IsEmpty());
  ASSERT_TRUE(client_.Delete(kConfigMaps, {kJob.key.ns, "mnist-state"}).ok());
  WorkForTenSeconds();
  EXPECT_EQ(StringAt(Status(), {"phase"}), "Starting") << "it goes on by itself";
  EXPECT_EQ(WriteFailure(), "");
}

TEST_F(RefusedJobTest, AStatusThatMayNotBeWrittenIsAnEvent) {
  LeadTwoServers();
  Refuse({"", "PATCH", "/status", 403, "trainingjobs/status is forbidden"});
  WorkForTenSeconds();
  EXPECT_THAT(Warnings(),
              Contains("FailedUpdate: cannot update the status: trainingjobs/status is forbidden"));
}

TEST_F(RefusedJobTest, AClaimThatIsNotValidFailsTheJob) {
  LeadTwoServers();
  Refuse({"",
          "POST",
          "/persistentvolumeclaims",
          422,
          "spec.storageClassName: a bad name",
          "mnist-parameter-server-0-1"});
  WorkForTenSeconds();
  EXPECT_EQ(StringAt(Status(), {"phase"}), "Failed");
  EXPECT_EQ(StringAt(Status(), {"message"}),
            "the API refuses the claim of parameter-server-0: spec.storageClassName: a bad name");
  EXPECT_THAT(Warnings(), Contains(HasSubstr("FailedCreate: the API refuses the claim of")));
}

TEST_F(RefusedJobTest, APodThatMayNotBeDeletedIsNamed) {
  LeadTwoServers();
  Work();
  SetNode("node1", "True");
  RunOn("node1", "mnist-worker-0-1");
  Refuse({"", "DELETE", "/pods", 403, "admission webhook \"policy.example\" denied the request"});
  const Json suspend = {{"spec", {{"runPolicy", {{"suspend", true}}}}}};
  view_ =
      ParseJobObject(client_.Patch(kTrainingJobs, kJob.key, PatchType::kMerge, suspend).value());
  for (int i = 0; i < 6; ++i) {
    WorkForTenSeconds();
  }
  EXPECT_THAT(WriteFailure(), HasSubstr("cannot delete pod mnist-worker-0-1: admission webhook"));
}

}  // namespace
}  // namespace adamant::kube
