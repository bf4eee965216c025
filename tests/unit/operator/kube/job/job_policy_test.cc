#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/job/job_reconcilers.h"
#include "operator/kube/pods/objects/pod_object.h"
#include "operator/kube/pods/pod_view.h"
#include "proto/adamant/v1/resources.pb.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

// What a job's run policy does, and how long its pods may wait.
namespace adamant::kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kPodNames = {
    "mnist-data-server-0-1", "mnist-parameter-server-0-1", "mnist-worker-0-1"};

class JobPolicyTest : public JobReconcilerRig {
 protected:
  void LeadWith(Json policy) {
    Lead({{"distribution",
           {{"workers", 1}, {"parameterServers", {{"count", 1}, {"copies", 1}, {"buckets", 1}}}}},
          {"runPolicy", std::move(policy)}});
    Work();
    ASSERT_EQ(Names(kPods), kPodNames);
  }

  void Change(const Json& policy) {
    const Json patch = {{"spec", {{"runPolicy", policy}}}};
    view_ =
        ParseJobObject(client_.Patch(kTrainingJobs, kJob.key, PatchType::kMerge, patch).value());
    ASSERT_NE(view_->job, nullptr) << view_->problems;
    Work();
  }

  [[nodiscard]] std::string Message() const {
    return StringAt(client_.Get(kTrainingJobs, kJob.key).value(), {"status", "message"});
  }

  [[nodiscard]] std::vector<bool> Deleted() const {
    std::vector<bool> deleted;
    for (const std::string& name : kPodNames) {
      deleted.push_back(IsBeingDeleted(name) || !client_.Get(kPods, {kJob.key.ns, name}).ok());
    }
    return deleted;
  }

  void RunAll() {
    SetNode("node1", "True");
    for (const std::string& name : kPodNames) {
      RunOn("node1", name);
    }
  }

  // To the job's end, by a deadline, and to the end of what it leads out.
  void Fail() {
    Change({{"activeDeadline", "1s"}});
    for (int i = 0; i < 40; ++i) {
      WorkAfter(seconds(1));
    }
    ASSERT_THAT(Message(), HasSubstr("ran longer than spec.runPolicy.activeDeadline, 1 s"));
  }

  // The job ends, and its leader before the pods have.
  void EndWithTheLeader() {
    RunAll();
    Fail();
    reconciler_ = nullptr;
    for (const std::string& name : kPodNames) {
      ConfirmDeletion(name);
    }
  }

  // A pod that ended before its job did.
  void LeaveAnEndedPod() { LeavePod("Succeeded"); }

  void LeavePod(const char* phase) {
    const JobIdentity job{.key = kJob.key, .uid = view_->uid};
    Json pod = client_.Create(kPods, PodObject(job, *view_->job, kEnded, 1, kPodSettings)).value();
    pod["status"]["phase"] = phase;
    ASSERT_TRUE(client_.Update(kPods, pod, "status").ok());
  }

  [[nodiscard]] bool EndedPodIsLeft() const {
    return !Names(kPods).empty() && !IsBeingDeleted(PodName(kJob.key.name, kEnded));
  }

 private:
  static constexpr controller::StartProcess kEnded{.id = {controller::Role::kWorker, 0},
                                                   .generation = 1};
};

TEST_F(JobPolicyTest, AJobThatCannotStartSaysWhyItsPodsWereMissing) {
  LeadWith({{"startDeadline", "1m"}, {"onStartDeadline", "Fail"}});
  Json pod = client_.Get(kPods, {kJob.key.ns, kPodNames[0]}).value();
  pod["status"] = {{"phase", "Pending"},
                   {"conditions",
                    Json::array({{{"type", "PodScheduled"},
                                  {"status", "False"},
                                  {"reason", "Unschedulable"},
                                  {"message", "0/3 nodes are available: 3 Insufficient cpu."}}})}};
  ASSERT_TRUE(client_.Update(kPods, pod, "status").ok());
  Work();
  WorkAfter(minutes(1));
  EXPECT_THAT(Message(),
              HasSubstr("startDeadline, 60 s, the job could not start: data-server-0 and 2 others "
                        "did not join (data-server: 1 of 1 pods, parameter-server: 1 of 1 pods, "
                        "worker: 1 of 1 pods); data-server-0: 0/3 nodes are available: 3 "
                        "Insufficient cpu."));
}

TEST_F(JobPolicyTest, WhatKeepsAPodFromBeingMadeIsNamedWhenTheTimeToStartIsOver) {
  server_.SetFaults([](const HttpRequest& request) {
    const bool is_data_server = request.method == "POST" &&
                                request.target.find("/pods?") != std::string::npos &&
                                request.target.find("dryRun") == std::string::npos &&
                                request.body.find("adamant-data-server") != std::string::npos;
    return is_data_server ? MemoryApiServer::Fault::kRefuse : MemoryApiServer::Fault::kNone;
  });
  Lead({{"runPolicy", {{"startDeadline", "1m"}, {"onStartDeadline", "Fail"}}}});
  for (int i = 0; i < 70; ++i) {
    clock_.Advance(seconds(1));
    reconciler_->Work(view_, Objects()).IgnoreError();
  }
  EXPECT_THAT(Message(), HasSubstr("; data-server-0: connection refused"));
}

TEST_F(JobPolicyTest, ADeadlineThatIsChangedCounts) {
  LeadWith({{"activeDeadline", "1h"}});
  WorkAfter(minutes(2));
  EXPECT_EQ(Message(), "");
  Change({{"activeDeadline", "3m"}});
  EXPECT_EQ(Message(), "");
  WorkAfter(minutes(1));
  EXPECT_THAT(Message(), HasSubstr("activeDeadline, 180 s"));
}

TEST_F(JobPolicyTest, PodsThatStillRunAreDeletedAtTheEnd) {
  LeadWith(Json::object());
  Fail();
  EXPECT_THAT(Deleted(), Each(true));
}

TEST_F(JobPolicyTest, PodsThatStillRunStayWhereThePolicyIsNone) {
  LeadWith({{"cleanUpPolicy", {{"pods", "None"}, {"claims", "Delete"}}}});
  EXPECT_THAT(Names(kPersistentVolumeClaims), Contains("mnist-parameter-server-0-1"));
  Fail();
  EXPECT_THAT(Deleted(), Each(false));
  EXPECT_TRUE(reconciler_->done());
  EXPECT_THAT(Names(kPersistentVolumeClaims), ElementsAre("mnist-output"));
}

TEST_F(JobPolicyTest, AnEndThatComesWhileTheStatusIsWrittenIsDoneOnceItsClaimsAreGone) {
  LeadWith({{"cleanUpPolicy", {{"pods", "None"}, {"claims", "Delete"}}}});
  Change({{"activeDeadline", "1s"}});
  WorkAfter(seconds(2));
  server_.SetFaults([this](const HttpRequest& request) {
    if (request.method == "GET" || request.target.find("/status") == std::string::npos) {
      return MemoryApiServer::Fault::kNone;
    }
    clock_.Advance(minutes(1));  // the time that the processes of a role have to end
    return MemoryApiServer::Fault::kDelay;
  });
  for (int i = 0; i < 10 && !reconciler_->done(); ++i) {
    clock_.Advance(seconds(1));
    WorkOn(Objects());
  }
  EXPECT_TRUE(reconciler_->done());
  EXPECT_THAT(Names(kPersistentVolumeClaims), ElementsAre("mnist-output"));
}

// The name of a claim was taken, so the job never started; what is on it is somebody's.
TEST_F(JobPolicyTest, AClaimThatIsNotTheJobsStaysWhateverThePolicy) {
  const std::string taken = "mnist-parameter-server-0-1";
  const Json claim = {{"metadata", {{"namespace", kJob.key.ns}, {"name", taken}}}};
  const std::string uid = UidOf(client_.Create(kPersistentVolumeClaims, claim).value());
  Lead({{"runPolicy", {{"activeDeadline", "1s"}, {"cleanUpPolicy", {{"claims", "Delete"}}}}}});
  for (int i = 0; i < 40; ++i) {
    WorkAfter(seconds(1));
  }
  ASSERT_THAT(Message(), HasSubstr("ran longer than"));
  ASSERT_TRUE(reconciler_->done());
  EXPECT_THAT(Names(kPersistentVolumeClaims), ElementsAre("mnist-output", taken));
  EXPECT_EQ(UidOf(client_.Get(kPersistentVolumeClaims, {kJob.key.ns, taken}).value()), uid);
}

TEST_F(JobPolicyTest, AClaimIsDeletedOnlyAsItWasLookedAt) {
  LeadWith({{"cleanUpPolicy", {{"claims", "Delete"}}}});
  const std::string name = "mnist-parameter-server-0-1";
  const std::string uid = UidOf(client_.Get(kPersistentVolumeClaims, {kJob.key.ns, name}).value());
  std::vector<std::string> deletions;
  server_.SetFaults([&](const HttpRequest& request) {
    if (request.method == "DELETE" &&
        request.target.find("persistentvolumeclaims/" + name) != std::string::npos) {
      deletions.push_back(request.body);
    }
    return MemoryApiServer::Fault::kNone;
  });
  Fail();
  ASSERT_FALSE(deletions.empty());
  EXPECT_THAT(deletions, Each(HasSubstr("\"preconditions\":{\"uid\":\"" + uid + "\"")));
}

TEST_F(JobPolicyTest, TheNextLeaderDeletesTheClaimsThatTheLastOneLeft) {
  LeadWith({{"cleanUpPolicy", {{"claims", "Delete"}}}});
  EndWithTheLeader();
  EXPECT_THAT(Names(kPersistentVolumeClaims), Contains("mnist-parameter-server-0-1"));
  view_ = ParseJobObject(client_.Get(kTrainingJobs, kJob.key).value());
  ASSERT_TRUE(view_->status->has_completion_time());
  JobReconcilers reconcilers(context_, [](const std::string& /*key*/) {});
  ASSERT_TRUE(reconcilers.Work(view_, Objects()).ok());
  EXPECT_THAT(Names(kPersistentVolumeClaims), ElementsAre("mnist-output"));

  const JobObjects objects = Objects();
  const std::uint64_t requests = server_.requests();
  ASSERT_TRUE(reconcilers.Work(view_, objects).ok());
  EXPECT_EQ(server_.requests(), requests) << "nothing is left to be asked for";
}

TEST_F(JobPolicyTest, TheNextLeaderDeletesThePodsThatTheLastOneLeft) {
  LeadWith({{"cleanUpPolicy", {{"pods", "All"}}}});
  EndWithTheLeader();
  LeaveAnEndedPod();
  view_ = ParseJobObject(client_.Get(kTrainingJobs, kJob.key).value());
  JobReconcilers reconcilers(context_, [](const std::string& /*key*/) {});
  ASSERT_TRUE(reconcilers.Work(view_, Objects()).ok());
  EXPECT_FALSE(EndedPodIsLeft());
}

// The API may carry out late what was asked of it before the job ended.
TEST_F(JobPolicyTest, APodThatComesAfterTheEndIsDeleted) {
  LeadWith({{"cleanUpPolicy", {{"claims", "Delete"}}}});
  EndWithTheLeader();
  view_ = ParseJobObject(client_.Get(kTrainingJobs, kJob.key).value());
  JobReconcilers reconcilers(context_, [](const std::string& /*key*/) {});
  ASSERT_TRUE(reconcilers.Work(view_, Objects()).ok());  // all is done
  LeavePod("Running");
  ASSERT_TRUE(reconcilers.Work(view_, Objects()).ok());
  EXPECT_FALSE(EndedPodIsLeft());
}

TEST_F(JobPolicyTest, APolicyThatIsChangedAfterTheEndCounts) {
  LeadWith({{"cleanUpPolicy", {{"claims", "Delete"}}}});
  EndWithTheLeader();
  LeaveAnEndedPod();
  view_ = ParseJobObject(client_.Get(kTrainingJobs, kJob.key).value());
  JobReconcilers reconcilers(context_, [](const std::string& /*key*/) {});
  ASSERT_TRUE(reconcilers.Work(view_, Objects()).ok());
  EXPECT_THAT(Names(kPersistentVolumeClaims), ElementsAre("mnist-output"));
  EXPECT_TRUE(EndedPodIsLeft());

  const Json patch = {{"spec", {{"runPolicy", {{"cleanUpPolicy", {{"pods", "All"}}}}}}}};
  view_ = ParseJobObject(client_.Patch(kTrainingJobs, kJob.key, PatchType::kMerge, patch).value());
  ASSERT_TRUE(reconcilers.Work(view_, Objects()).ok());
  EXPECT_FALSE(EndedPodIsLeft());
}

TEST_F(JobPolicyTest, PodsOfASuspendedJobGoWhateverThePolicy) {
  LeadWith({{"cleanUpPolicy", {{"pods", "None"}}}});
  Change({{"suspend", true}});
  for (int i = 0; i < 10; ++i) {
    WorkAfter(seconds(1));
  }
  EXPECT_THAT(Deleted(), Each(true));
}

TEST_F(JobPolicyTest, AJobThatCannotStartReleasesItsPodsAndTriesAgainByItself) {
  LeadWith({{"startDeadline", "30s"}});
  WorkAfter(seconds(30));
  for (int i = 0; i < 4; ++i) {
    WorkAfter(seconds(1));
  }
  EXPECT_THAT(Deleted(), Each(true));
  EXPECT_FALSE(reconciler_->done());
  const Json job = client_.Get(kTrainingJobs, kJob.key).value();
  EXPECT_EQ(job["status"]["phase"], "Pending");
  EXPECT_THAT(Message(), HasSubstr("the job could not start: data-server-0 and 2 others"));
  EXPECT_THAT(job["status"]["conditions"].dump(), HasSubstr("StartDeadlineExceeded"));
  WorkAfter(seconds(15));
  EXPECT_EQ(Names(kPods),
            (std::vector<std::string>{
                "mnist-data-server-0-2", "mnist-parameter-server-0-2", "mnist-worker-0-2"}));
  EXPECT_EQ(Message(), "");
}

TEST_F(JobPolicyTest, AJobThatIsSuspendedWhileItWaitsToTryAgainStaysSo) {
  LeadWith({{"startDeadline", "30s"}});
  WorkAfter(seconds(30));
  Change({{"suspend", true}});
  for (int i = 0; i < 60; ++i) {
    WorkAfter(seconds(1));
  }
  EXPECT_THAT(Names(kPods), testing::IsEmpty());
  EXPECT_EQ(client_.Get(kTrainingJobs, kJob.key).value()["status"]["phase"], "Suspended");
  EXPECT_EQ(Message(), "spec.runPolicy.suspend is true");
  Change({{"suspend", false}});
  EXPECT_THAT(Names(kPods), Contains("mnist-worker-0-2"));
}

TEST_F(JobPolicyTest, AJobThatCannotStartFailsWhereItsPolicyIsFail) {
  LeadWith({{"startDeadline", "30s"}, {"onStartDeadline", "Fail"}});
  WorkAfter(seconds(30));
  EXPECT_THAT(Message(), HasSubstr("within spec.runPolicy.startDeadline, 30 s"));
  EXPECT_EQ(client_.Get(kTrainingJobs, kJob.key).value()["status"]["phase"], "Failed");
}

TEST_F(JobPolicyTest, APodThatHasNoNodeMayWaitForAsLongAsItTakes) {
  LeadWith(Json::object());
  for (int i = 0; i < 120; ++i) {
    WorkAfter(minutes(1));
  }
  EXPECT_EQ(Names(kPods), kPodNames);
  EXPECT_THAT(Deleted(), Each(false));
  RunAll();
  for (int i = 0; i < 14; ++i) {
    WorkAfter(minutes(1));
  }
  EXPECT_THAT(Deleted(), Each(false)) << "they have all their time from when they got a node";
  WorkAfter(minutes(1));
  EXPECT_THAT(Deleted(), Each(true));
}

}  // namespace
}  // namespace adamant::kube
