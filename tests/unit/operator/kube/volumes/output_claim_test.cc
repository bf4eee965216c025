#include "operator/kube/volumes/output_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/api/custom_resources.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

// A model's way out, before it is trained.
namespace adamant::kube {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Resource kStorageClasses{"storage.k8s.io", "v1", "storageclasses", "StorageClass", false};

constexpr char kTrial[] = "mnist-export-check";

class OutputClaimTest : public JobReconcilerRig {
 protected:
  void MakeClaim(const std::string& phase, const std::string& storage_class = "") {
    Json claim = {{"metadata", {{"namespace", kJob.key.ns}, {"name", "out"}}}};
    if (!storage_class.empty()) {
      claim["spec"]["storageClassName"] = storage_class;
    }
    claim = client_.Create(kPersistentVolumeClaims, claim).value();
    claim["status"]["phase"] = phase;
    ASSERT_TRUE(client_.Update(kPersistentVolumeClaims, claim, "status").ok());
  }

  void Change(const Json& spec) {
    ASSERT_TRUE(
        client_
            .Patch(
                kPersistentVolumeClaims, {kJob.key.ns, "out"}, PatchType::kMerge, {{"spec", spec}})
            .ok());
  }

  void MakeClass(const std::string& name, const std::string& mode) {
    ASSERT_TRUE(
        client_
            .Create(kStorageClasses, {{"metadata", {{"name", name}}}, {"volumeBindingMode", mode}})
            .ok());
  }

  [[nodiscard]] std::string Checked(bool sees_cluster = true) const {
    return std::string(CheckClaim(client_, {kJob.key.ns, "out"}, sees_cluster).status().message());
  }

  void SetSuspended(bool suspended) {
    const Json patch = {{"spec", {{"runPolicy", {{"suspend", suspended}}}}}};
    view_ =
        ParseJobObject(client_.Patch(kTrainingJobs, kJob.key, PatchType::kMerge, patch).value());
    ASSERT_NE(view_->job, nullptr) << view_->problems;
  }

  void End(const std::string& pod) {
    const Json ended = {{"status", {{"phase", "Succeeded"}}}};
    ASSERT_TRUE(client_.Patch(kPods, {kJob.key.ns, pod}, PatchType::kMerge, ended, "status").ok());
  }

  void EndAll() {
    for (const std::string& pod : Names(kPods)) {
      End(pod);
    }
  }

  /// The trial's pod ends, with its last line where it has failed.
  void EndTrial(int code, const std::string& line = "") {
    const Json state = {{"terminated", {{"exitCode", code}, {"message", line}}}};
    const Json status = {
        {"phase", code == 0 ? "Succeeded" : "Failed"},
        {"containerStatuses", Json::array({{{"name", "adamant"}, {"state", state}}})}};
    ASSERT_TRUE(
        client_
            .Patch(kPods, {kJob.key.ns, kTrial}, PatchType::kMerge, {{"status", status}}, "status")
            .ok());
  }

  [[nodiscard]] std::string TrialUid() const {
    const auto pod = client_.Get(kPods, {kJob.key.ns, kTrial});
    return pod.ok() ? UidOf(*pod) : "";
  }

  void WorkForTenSeconds() {
    for (int i = 0; i < 10; ++i) {
      WorkAfter(seconds(1));
    }
  }

  [[nodiscard]] std::string Message() const {
    return StringAt(client_.Get(kTrainingJobs, kJob.key).value(), {"status", "message"});
  }
};

TEST_F(OutputClaimTest, AClaimWithAVolumeIsFine) {
  MakeClaim("Bound");
  EXPECT_EQ(Checked(), "");
}

TEST_F(OutputClaimTest, AClaimThatCanOnlyBeReadIsNot) {
  MakeClaim("Bound");
  Change({{"accessModes", {"ReadOnlyMany"}}});
  EXPECT_THAT(Checked(), HasSubstr("it can only be read (accessModes: ReadOnlyMany)"));
  Change({{"accessModes", {"ReadOnlyMany", "ReadWriteOnce"}}});
  EXPECT_EQ(Checked(), "");
}

TEST_F(OutputClaimTest, AClaimWithoutAFileSystemIsNot) {
  MakeClaim("Bound");
  Change({{"volumeMode", "Block"}});
  EXPECT_THAT(Checked(), HasSubstr("it is a block device"));
  Change({{"volumeMode", "Filesystem"}});
  EXPECT_EQ(Checked(), "");
}

TEST_F(OutputClaimTest, AClaimWhoseVolumeIsMadeForItsPodIsFine) {
  MakeClass("local", "WaitForFirstConsumer");
  MakeClaim("Pending", "local");
  EXPECT_EQ(Checked(), "");
}

TEST_F(OutputClaimTest, AClaimThatShouldHaveAVolumeByNowIsNot) {
  MakeClass("fast", "Immediate");
  MakeClaim("Pending", "fast");
  EXPECT_THAT(Checked(),
              HasSubstr("it has no volume, and nothing shows that it will get one "
                        "(storage class fast)"));
}

TEST_F(OutputClaimTest, AClaimOfAnUnknownClassWaitsForAVolume) {
  MakeClaim("Pending", "by-hand");
  EXPECT_THAT(Checked(), HasSubstr("(storage class by-hand)"));
}

TEST_F(OutputClaimTest, WhoDoesNotSeeTheClusterTakesAnyClassToMakeAVolumeAndAsksForNone) {
  MakeClass("fast", "Immediate");
  MakeClaim("Pending", "fast");
  int asked = 0;
  server_.SetFaults([&](const HttpRequest& request) {
    asked += request.target.find("/storageclasses") != std::string::npos ? 1 : 0;
    return MemoryApiServer::Fault::kNone;
  });
  EXPECT_EQ(Checked(/*sees_cluster=*/false), "");
  EXPECT_EQ(asked, 0);
  EXPECT_NE(Checked(/*sees_cluster=*/true), "");
  EXPECT_EQ(asked, 1);
}

TEST_F(OutputClaimTest, AJobBeginsOnSuchAClaimWhereTheClusterIsNotSeen) {
  MakeClass("fast", "Immediate");
  MakeClaim("Pending", "fast");
  sees_cluster_ = false;
  Lead({{"output", {{"claim", "out"}}}});
  Work();
  EXPECT_THAT(Names(kPods), ElementsAre(kTrial));
}

TEST_F(OutputClaimTest, ALostVolumeIsTold) {
  MakeClaim("Lost");
  EXPECT_EQ(Checked(), "its volume is lost");
}

TEST_F(OutputClaimTest, AJobWhoseOutputClaimIsMissingWaitsBeforeItsFirstPod) {
  Lead({{"output", {{"claim", "out"}}}});
  WorkForTenSeconds();
  EXPECT_THAT(Names(kPods), IsEmpty());
  EXPECT_EQ(Message(),
            "cannot mount claim out: there is no claim out in namespace team; the job begins once "
            "there is");
  MakeClaim("Bound");
  WorkForTenSeconds();
  EXPECT_THAT(Names(kPods), ElementsAre(kTrial));
  EndTrial(0);
  WorkForTenSeconds();
  EXPECT_THAT(Names(kPods), AllOf(Not(IsEmpty()), Not(Contains(kTrial))));
  EXPECT_EQ(Message(), "");
}

TEST_F(OutputClaimTest, AClaimThatCannotBeWrittenToIsToldAndTriedAgain) {
  MakeClaim("Bound");
  Lead({{"output", {{"claim", "out"}}}});
  Work();
  ASSERT_THAT(Names(kPods), ElementsAre(kTrial));
  EndTrial(1, "adamant: cannot create /data/run: Read-only file system");
  const std::string first = TrialUid();
  WorkAfter(seconds(1));
  EXPECT_EQ(TrialUid(), first) << "its log can be read until the next attempt";
  WorkForTenSeconds();
  EXPECT_THAT(Names(kPods), ElementsAre(kTrial));
  EXPECT_NE(TrialUid(), first);
  EXPECT_EQ(Message(),
            "cannot write to claim out: its pod mnist-export-check exited with code 1: adamant: "
            "cannot create /data/run: Read-only file system");
  EndTrial(0);
  WorkForTenSeconds();
  EXPECT_THAT(Names(kPods), AllOf(Not(IsEmpty()), Not(Contains(kTrial))));
  EXPECT_EQ(Message(), "");
}

TEST_F(OutputClaimTest, ATrialThatDoesNotStartIsTold) {
  MakeClaim("Bound");
  Lead({{"output", {{"claim", "out"}}}});
  for (int i = 0; i < 8; ++i) {
    WorkForTenSeconds();
  }
  EXPECT_THAT(Names(kPods), ElementsAre(kTrial));
  EXPECT_THAT(Message(), HasSubstr("its pod mnist-export-check has not started for 60 s"));
}

TEST_F(OutputClaimTest, AnotherLeaderTakesTheTrialOver) {
  MakeClaim("Bound");
  const Json spec = {{"output", {{"claim", "out"}}}};
  Lead(spec);
  Work();
  const std::string uid = TrialUid();
  Lead(spec);
  Work();
  EXPECT_EQ(TrialUid(), uid);
  EndTrial(0);
  WorkForTenSeconds();
  EXPECT_THAT(Names(kPods), AllOf(Not(IsEmpty()), Not(Contains(kTrial))));
}

TEST_F(OutputClaimTest, AJobThatIsSuspendedWhileItsClaimIsTriedKeepsNoTrial) {
  MakeClaim("Bound");
  Lead({{"output", {{"claim", "out"}}}});
  Work();
  SetSuspended(true);
  for (int i = 0; i < 4; ++i) {
    WorkForTenSeconds();
  }
  EXPECT_TRUE(Names(kPods).empty() || IsBeingDeleted(kTrial));
}

TEST_F(OutputClaimTest, AClaimThatWasWrittenToIsNotTriedAgainUnlessItIsAnother) {
  const Json spec = {{"output", {{"claim", "out"}}}};
  MakeClaim("Bound");
  Lead(spec);
  Work();
  EndTrial(0);
  WorkForTenSeconds();
  EndAll();
  SetSuspended(true);
  WorkForTenSeconds();
  int trials = 0;
  server_.SetFaults([&](const HttpRequest& request) {
    trials += request.method == "POST" && request.body.find("--check") != std::string::npos ? 1 : 0;
    return MemoryApiServer::Fault::kNone;
  });
  Lead(spec);
  WorkForTenSeconds();
  EXPECT_EQ(trials, 0) << "the status says that it was";
  EXPECT_THAT(Names(kPods), Contains(HasSubstr("-2")));

  EndAll();
  SetSuspended(true);
  WorkForTenSeconds();
  ASSERT_TRUE(client_.Delete(kPersistentVolumeClaims, {kJob.key.ns, "out"}).ok());
  MakeClaim("Bound");
  SetSuspended(false);
  WorkForTenSeconds();
  EXPECT_GE(trials, 1);
  EXPECT_THAT(Names(kPods), Contains(kTrial));
}

TEST_F(OutputClaimTest, AClaimThatGoesWhileTheJobIsSuspendedIsMissedBeforeItGoesOn) {
  MakeClaim("Bound");
  Lead({{"output", {{"claim", "out"}}}});
  Work();
  EndTrial(0);
  Work();
  End("mnist-worker-0-1");
  SetSuspended(true);
  WorkForTenSeconds();
  ASSERT_THAT(Names(kPods), ElementsAre("mnist-worker-0-1"));
  ASSERT_TRUE(client_.Delete(kPersistentVolumeClaims, {kJob.key.ns, "out"}).ok());
  SetSuspended(false);
  WorkForTenSeconds();
  EXPECT_THAT(Names(kPods), ElementsAre("mnist-worker-0-1"));
  EXPECT_THAT(Message(), HasSubstr("there is no claim out"));
}

TEST_F(OutputClaimTest, PodsThatAreChangedWhileTheJobIsSuspendedAreTriedBeforeItGoesOn) {
  Lead(Json::object());
  Work();
  SetSuspended(true);
  WorkForTenSeconds();
  int dry_runs = 0;
  server_.SetFaults([&](const HttpRequest& request) {
    dry_runs += request.target.find("dryRun=All") != std::string::npos ? 1 : 0;
    return MemoryApiServer::Fault::kNone;
  });
  SetSuspended(false);
  WorkForTenSeconds();
  EXPECT_EQ(dry_runs, 3);
}

TEST_F(OutputClaimTest, AClaimThatTheJobMakesForItsOutputIsThereFromTheStart) {
  Lead(Json::object());
  Work();
  EXPECT_THAT(Names(kPersistentVolumeClaims), Contains("mnist-output"));
}

}  // namespace
}  // namespace adamant::kube
