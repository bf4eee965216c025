#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/core/state/messages.h"
#include "operator/kube/job/job_reconcilers.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

// What a job's events, and its observer, are told of its processes.
namespace adamant::kube {
namespace {

using controller::Role;
using controller::SlotId;
using std::chrono::seconds;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class JobEventsTest : public JobReconcilerRig {
 protected:
  void SetUp() override {
    Lead({{"distribution",
           {{"workers", 1}, {"parameterServers", {{"count", 1}, {"copies", 1}, {"buckets", 1}}}}}});
    Work();
    SetNode("node1", "True");
    for (const std::string& name : Names(kPods)) {
      RunOn("node1", name);
    }
    Work();
  }

  /// The node says that the container has ended.
  void End(const std::string& pod_name, const Json& terminated) {
    Json pod = client_.Get(kPods, {kJob.key.ns, pod_name}).value();
    pod["status"]["phase"] = "Failed";
    pod["status"]["containerStatuses"] =
        Json::array({{{"name", "adamant"}, {"state", {{"terminated", terminated}}}}});
    ASSERT_TRUE(client_.Update(kPods, pod, "status").ok());
    Work();
  }

  /// "Warning Lost: worker-0 exited with code 1"
  [[nodiscard]] std::vector<std::string> Told() {
    events_.Step();
    std::vector<std::string> texts;
    for (const Json& event : List(kEvents)) {
      texts.push_back(event["type"].get<std::string>() + " " + event["reason"].get<std::string>() +
                      ": " + event["message"].get<std::string>());
    }
    return texts;
  }
};

TEST_F(JobEventsTest, AProcessThatFailsIsLost) {
  End("mnist-worker-0-1", {{"exitCode", 1}, {"reason", "Error"}});
  EXPECT_THAT(Told(), Contains("Warning Lost: worker-0 exited with code 1 (on node1)"));
}

TEST_F(JobEventsTest, AProcessWhosePodAUserDeletedIsNotLost) {
  ASSERT_TRUE(client_.Delete(kPods, {kJob.key.ns, "mnist-worker-0-1"}).ok());
  Work();
  End("mnist-worker-0-1", {{"exitCode", 0}, {"reason", "Completed"}});
  EXPECT_THAT(Told(),
              Contains("Normal Disrupted: worker-0 has ended: its pod was deleted (on node1)"));
  EXPECT_THAT(Told(), Not(Contains(HasSubstr("Lost"))));
  EXPECT_THAT(Told(), Contains(StartsWith("Normal Restarting: worker-0 starts again")));
}

TEST_F(JobEventsTest, AContainerThatCannotStartFailsTheJob) {
  End("mnist-worker-0-1",
      {{"exitCode", 128}, {"reason", "StartError"}, {"message", "exec: \"bash\": not found"}});
  const Json status = client_.Get(kTrainingJobs, kJob.key).value()["status"];
  EXPECT_EQ(status["phase"], "Failed");
  EXPECT_THAT(status["message"].get<std::string>(),
              HasSubstr("worker-0 could not start: exec: \"bash\": not found"));
}

TEST_F(JobEventsTest, ReasonsAreWordsInCamelCase) {
  End("mnist-worker-0-1", {{"exitCode", 1}, {"reason", "Error"}});
  EXPECT_THAT(Told(), Each(MatchesRegex("(Normal|Warning) ([A-Z][a-z]+)+: .*")));
  EXPECT_THAT(Told(), Not(IsEmpty()));
}

TEST_F(JobEventsTest, RestartsOfEachRoleAreCountedForTheLifeOfTheJob) {
  End("mnist-worker-0-1", {{"exitCode", 1}, {"reason", "Error"}});
  WorkAfter(seconds(5));
  const Json status = client_.Get(kTrainingJobs, kJob.key).value()["status"];
  EXPECT_EQ(status["restarts"], 1);
  EXPECT_EQ(status["roles"]["worker"]["restarts"], 1);
  EXPECT_EQ(status["roles"]["dataServer"]["restarts"], 0);
}

// --- What its observer is told

TEST_F(JobEventsTest, AnObserverIsToldHowTheJobStands) {
  ASSERT_FALSE(observed_.reports.empty());
  const RecordedJobs::Report& last = observed_.reports.back();
  EXPECT_EQ(last.job, kJob.key);
  EXPECT_EQ(last.phase, controller::Phase::kStarting);
  EXPECT_EQ(last.status.phase(), v1::TrainingJobStatus::PHASE_STARTING);
  EXPECT_EQ(last.status.roles().parameter_server().desired(), 1);
  EXPECT_EQ(last.workers, 1);
  EXPECT_NE(last.uid, 0u);
}

TEST_F(JobEventsTest, AnObserverIsToldOfALossAndOfTheRestart) {
  End("mnist-worker-0-1", {{"exitCode", 1}, {"reason", "Error"}});
  WorkAfter(seconds(5));
  std::vector<controller::Note::Kind> kinds;
  for (const auto& [job, note] : observed_.notes) {
    EXPECT_EQ(job, kJob.key);
    if (note.member == SlotId{Role::kWorker, 0}) {
      kinds.push_back(note.kind);
    }
  }
  EXPECT_THAT(kinds,
              ElementsAre(controller::Note::Kind::kLost, controller::Note::Kind::kRestarting));
  const v1::RoleStatus& worker = observed_.reports.back().status.roles().worker();
  EXPECT_EQ(worker.restart_causes().failed(), 1);
}

TEST_F(JobEventsTest, AnObserverIsToldThatAJobIsNotLedAnyMore) {
  JobReconcilers reconcilers(context_, [](const std::string&) {});
  reconcilers.Drop(kJob.key);
  EXPECT_THAT(observed_.gone, ElementsAre(kJob.key));
}

}  // namespace
}  // namespace adamant::kube
