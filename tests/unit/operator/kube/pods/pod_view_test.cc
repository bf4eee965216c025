// What is read out of pods.

#include "operator/kube/pods/pod_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/pods/objects/export_pod.h"
#include "operator/kube/pods/objects/pod_object.h"
#include "operator/kube_client/base/json.h"
#include "tests/unit/operator/kube/job/job_fixture.h"

namespace adamant::kube {
namespace {

using controller::Role;
using State = ObservedPod::State;

Json Pod(const Json& status) {
  Json pod = PodObject(kJob, *ReadTestJob(), {{Role::kWorker, 1}, 3}, 1, kPodSettings);
  pod["metadata"]["uid"] = "pod-uid";
  pod["status"] = status;
  return pod;
}

Json ContainerIs(const std::string& state, const Json& detail, const char* name = "adamant") {
  return {{"name", name}, {"state", {{state, detail}}}};
}

Json EndedWith(const Json& terminated) {
  return Pod({{"phase", "Failed"},
              {"containerStatuses", Json::array({ContainerIs("terminated", terminated)})}});
}

TEST(PodViewTest, APodSaysWhichProcessItIs) {
  Json pod = Pod({{"phase", "Pending"}});
  pod["spec"]["nodeName"] = "node-1";
  const auto view = ParsePod(pod);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->job_name, "mnist");
  EXPECT_EQ(view->job_uid, kJob.uid);
  EXPECT_EQ(view->node, "node-1");
  EXPECT_TRUE(view->IsProcess());
  EXPECT_EQ(view->pod.name, "mnist-worker-1-3");
  EXPECT_EQ(view->pod.uid, "pod-uid");
  EXPECT_EQ(view->pod.process, (controller::StartProcess{{Role::kWorker, 1}, 3}));
}

TEST(PodViewTest, AddressesAreComparedWhateverTheirSpelling) {
  const auto view = ParsePod(Pod({{"phase", "Running"},
                                  {"podIP", "FD00:0:0::0009"},
                                  {"podIPs", Json::array({{{"ip", "FD00:0:0::0009"}}})},
                                  {"hostIP", "2001:DB8::1"},
                                  {"hostIPs", Json::array({{{"ip", "2001:db8:0::1"}}})}}));
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->addresses,
            (std::vector<std::string>{"fd00::9", "2001:db8::1", "fd00::9", "2001:db8::1"}));
}

TEST(PodViewTest, ALossIsCountedByWhatHappenedToThePod) {
  using controller::LossReason;
  EXPECT_EQ(ParsePod(EndedWith({{"exitCode", 1}, {"reason", "Error"}}))->pod.reason,
            LossReason::kFailed);
  Json killed = EndedWith({{"exitCode", 137}, {"reason", "OOMKilled"}});
  EXPECT_EQ(ParsePod(killed)->pod.reason, LossReason::kOutOfMemory);
  killed["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z";
  EXPECT_EQ(ParsePod(killed)->pod.reason, LossReason::kDeleted);
  killed["status"]["conditions"] =
      Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}});
  EXPECT_EQ(ParsePod(killed)->pod.reason, LossReason::kEvicted);
  EXPECT_EQ(ParsePod(Pod({{"phase", "Failed"}, {"reason", "Evicted"}}))->pod.reason,
            LossReason::kEvicted);
}

TEST(PodViewTest, EveryRoleIsReadBack) {
  for (const Role role : {Role::kDataServer, Role::kParameterServer, Role::kWorker}) {
    const controller::StartProcess process{{role, 4}, 12};
    const auto view = ParsePod(PodObject(kJob, *ReadTestJob(), process, 1, kPodSettings));
    ASSERT_NE(view, nullptr);
    EXPECT_EQ(view->pod.process, process);
  }
}

TEST(PodViewTest, WhyAPodHasNotStartedIsSaidByItsSchedulerOrItsNode) {
  const Json unscheduled = {{"type", "PodScheduled"},
                            {"status", "False"},
                            {"reason", "Unschedulable"},
                            {"message", "0/3 nodes are available: 3 Insufficient cpu."}};
  EXPECT_EQ(
      ParsePod(Pod({{"phase", "Pending"}, {"conditions", Json::array({unscheduled})}}))->waits,
      "0/3 nodes are available: 3 Insufficient cpu.");
  const auto waiting = [](const Json& detail) {
    return ParsePod(Pod({{"phase", "Pending"},
                         {"containerStatuses", Json::array({ContainerIs("waiting", detail)})}}))
        ->waits;
  };
  EXPECT_EQ(waiting({{"reason", "ErrImagePull"}, {"message", "not found"}}),
            "ErrImagePull: not found");
  EXPECT_EQ(waiting({{"reason", "ContainerCreating"}}), "");
  EXPECT_EQ(ParsePod(Pod({{"phase", "Running"}}))->waits, "");
}

TEST(PodViewTest, UntilItsContainerRunsAPodIsPending) {
  for (const Json& status :
       {Json(),
        Json({{"phase", "Pending"}}),
        Json({{"phase", "Unknown"}}),
        Json({{"phase", "Pending"},
              {"containerStatuses",
               Json::array({ContainerIs("waiting", {{"reason", "ImagePullBackOff"}})})}})}) {
    const auto view = ParsePod(Pod(status));
    EXPECT_EQ(view->pod.state, State::kPending) << status;
    EXPECT_FALSE(view->pod.disrupted);
  }
}

TEST(PodViewTest, ARunningPodRuns) {
  const auto view =
      ParsePod(Pod({{"phase", "Running"},
                    {"containerStatuses", Json::array({ContainerIs("running", Json::object())})}}));
  EXPECT_EQ(view->pod.state, State::kRunning);
  EXPECT_FALSE(view->pod.deleting);
  EXPECT_FALSE(view->pod.disrupted);
}

TEST(PodViewTest, HowAContainerEndedIsTold) {
  const auto how = [](const Json& terminated) {
    const auto view = ParsePod(EndedWith(terminated));
    EXPECT_EQ(view->pod.state, State::kEnded);
    EXPECT_FALSE(view->pod.disrupted);
    EXPECT_EQ(view->pod.exit_code, terminated.value("exitCode", 0));
    return view->pod.how;
  };
  EXPECT_EQ(how({{"exitCode", 0}, {"reason", "Completed"}}), "exited with code 0");
  EXPECT_EQ(how({{"exitCode", 1}, {"reason", "Error"}}), "exited with code 1");
  EXPECT_EQ(how({{"exitCode", 137}, {"reason", "Error"}}), "was killed by signal 9");
  EXPECT_EQ(how({{"exitCode", 137}, {"reason", "OOMKilled"}}),
            "was killed by signal 9 as memory ran out (OOMKilled)");
  EXPECT_EQ(how({{"exitCode", 1}, {"signal", 11}}), "was killed by signal 11");
}

TEST(PodViewTest, TheLastLineThatAContainerLeftIsTold) {
  const auto how = [](int code, const std::string& message) {
    return ParsePod(EndedWith({{"exitCode", code}, {"message", message}}))->pod.how;
  };
  EXPECT_EQ(how(1, "first\nadamant: disk full\n \n"), "exited with code 1: adamant: disk full");
  EXPECT_EQ(how(1, "disk full"), "exited with code 1: disk full");
  EXPECT_EQ(how(1, " \n"), "exited with code 1");
  EXPECT_EQ(how(0, "done"), "exited with code 0");
  EXPECT_LT(how(1, std::string(5000, 'x')).size(), 600U);
}

TEST(PodViewTest, AKillForWantOfMemoryNamesTheLimit) {
  Json pod = EndedWith({{"exitCode", 137}, {"reason", "OOMKilled"}});
  pod["spec"]["containers"] =
      Json::array({{{"name", "sidecar"}, {"resources", {{"limits", {{"memory", "1Gi"}}}}}},
                   {{"name", "adamant"}, {"resources", {{"limits", {{"memory", "512Mi"}}}}}}});
  EXPECT_EQ(ParsePod(pod)->pod.how,
            "was killed by signal 9 as memory ran out (OOMKilled; its limit is 512Mi)");
}

TEST(PodViewTest, CodeTwoIsABadConfiguration) {
  EXPECT_TRUE(ParsePod(EndedWith({{"exitCode", 2}}))->pod.bad_configuration);
  EXPECT_FALSE(ParsePod(EndedWith({{"exitCode", 1}}))->pod.bad_configuration);
}

// Other containers of the template may go on, and the pod with them.
TEST(PodViewTest, OnlyOurContainersEndCounts) {
  const Json ours = ContainerIs("terminated", {{"exitCode", 1}});
  const Json other_runs = ContainerIs("running", Json::object(), "sidecar");
  EXPECT_EQ(
      ParsePod(Pod({{"phase", "Running"}, {"containerStatuses", {other_runs, ours}}}))->pod.state,
      State::kEnded);
  const Json other_ended = ContainerIs("terminated", {{"exitCode", 1}}, "sidecar");
  const Json runs = ContainerIs("running", Json::object());
  EXPECT_EQ(
      ParsePod(Pod({{"phase", "Running"}, {"containerStatuses", {other_ended, runs}}}))->pod.state,
      State::kRunning);
}

TEST(PodViewTest, APodThatItsNodeRefusesOrEvictsHasEndedByNoFaultOfItsOwn) {
  for (const char* reason : {"Evicted", "OutOfcpu", "NodeAffinity"}) {
    const auto view =
        ParsePod(Pod({{"phase", "Failed"}, {"reason", reason}, {"message", "The node says no."}}));
    EXPECT_EQ(view->pod.state, State::kEnded);
    EXPECT_TRUE(view->pod.disrupted);
    EXPECT_FALSE(view->pod.bad_configuration);
    EXPECT_NE(view->pod.exit_code, 0);
    EXPECT_EQ(view->pod.how,
              "was ended by its node (" + std::string(reason) + "): The node says no.");
  }
}

// Kubernetes fails the pods of nodes that it has lost: their containers may still run.
TEST(PodViewTest, AFailedPodWhoseContainerIsSaidToRunIsNoProofOfItsEnd) {
  const auto view =
      ParsePod(Pod({{"phase", "Failed"},
                    {"containerStatuses", Json::array({ContainerIs("running", Json::object())})}}));
  EXPECT_EQ(view->pod.state, State::kGone);
  EXPECT_TRUE(view->pod.disrupted);
}

TEST(PodViewTest, AnInitContainerThatFailsIsTheJobsOwnFault) {
  const auto view =
      ParsePod(Pod({{"phase", "Failed"},
                    {"initContainerStatuses",
                     Json::array({ContainerIs("terminated", {{"exitCode", 0}}, "first"),
                                  ContainerIs("terminated", {{"exitCode", 3}}, "second")})},
                    {"containerStatuses",
                     Json::array({ContainerIs("waiting", {{"reason", "PodInitializing"}})})}}));
  EXPECT_EQ(view->pod.state, State::kEnded);
  EXPECT_FALSE(view->pod.disrupted);
  EXPECT_EQ(view->pod.how, "did not start: an init container exited with code 3");
}

TEST(PodViewTest, AContainerThatCannotStartIsAsFinalAsABadConfiguration) {
  for (const char* reason : {"StartError", "ContainerCannotRun"}) {
    const auto view = ParsePod(EndedWith(
        {{"exitCode", 128}, {"reason", reason}, {"message", "exec: \"bash\": not found"}}));
    EXPECT_TRUE(view->pod.bad_configuration) << reason;
    EXPECT_EQ(view->pod.how, "could not start: exec: \"bash\": not found");
  }
}

TEST(PodViewTest, AProcessWhosePodWasDeletedIsNotSaidToHaveExited) {
  Json pod = EndedWith({{"exitCode", 0}, {"reason", "Completed"}});
  pod["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z";
  EXPECT_EQ(ParsePod(pod)->pod.how, "has ended: its pod was deleted");
}

TEST(PodViewTest, ADisruptionIsNoFaultOfThePod) {
  Json pod = EndedWith({{"exitCode", 137}});
  pod["status"]["conditions"] = Json::array(
      {{{"type", "Ready"}, {"status", "False"}},
       {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}}});
  EXPECT_TRUE(ParsePod(pod)->pod.disrupted);
  pod["status"]["conditions"][1]["status"] = "False";
  EXPECT_FALSE(ParsePod(pod)->pod.disrupted);
}

TEST(PodViewTest, APodThatIsBeingDeletedStillRuns) {
  Json pod = Pod({{"phase", "Running"}});
  pod["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z";
  const auto view = ParsePod(pod);
  EXPECT_EQ(view->pod.state, State::kRunning);
  EXPECT_TRUE(view->pod.deleting);
  EXPECT_TRUE(view->pod.disrupted);
}

TEST(PodViewTest, AnExportIsNoProcess) {
  Json pod = ExportPodObject(kJob, *ReadTestJob(), {7, 1}, kPodSettings);
  pod["status"] = {
      {"phase", "Succeeded"},
      {"containerStatuses", Json::array({ContainerIs("terminated", {{"exitCode", 0}})})}};
  const auto view = ParsePod(pod);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->output, OutputWork{.snapshot = 7});
  EXPECT_EQ(view->job_uid, kJob.uid);
  EXPECT_EQ(view->pod.state, State::kEnded);
  EXPECT_EQ(view->pod.exit_code, 0);
}

TEST(PodViewTest, APodThatIsNotOfAJobIsPassedOver) {
  EXPECT_EQ(ParsePod(Json::object()), nullptr);
  EXPECT_EQ(ParsePod(Json::parse(R"({"metadata": {"labels": {"app": "web"}}})")), nullptr);
  EXPECT_EQ(ParsePod(Json::parse(R"({"metadata": {"labels": 3}})")), nullptr);
}

TEST(PodViewTest, APodWhoseLabelsWereTamperedWithIsPassedOver) {
  const std::vector<std::pair<const char*, const char*>> tampered = {
      {kJobLabel, ""},
      {kJobUidLabel, ""},
      {kRoleLabel, "boss"},
      {kRoleLabel, ""},
      {kSlotLabel, "-1"},
      {kSlotLabel, "1x"},
      {kSlotLabel, "4294967296"},
      {kSlotLabel, ""},
      {kGenerationLabel, "many"},
      {kGenerationLabel, "18446744073709551616"},
      {"adamant.dev/export", "7x"},
      {"adamant.dev/export", "0"}};
  for (const auto& [label, value] : tampered) {
    Json pod = Pod({{"phase", "Running"}});
    pod["metadata"]["labels"][label] = value;
    EXPECT_EQ(ParsePod(pod), nullptr) << label << "=" << value;
  }
}

TEST(PodViewTest, AStatusOfOddTypesIsNoEnd) {
  for (const char* status : {R"({"phase": 3})",
                             R"({"phase": "Running", "containerStatuses": {"name": "adamant"}})",
                             R"({"phase": "Running", "containerStatuses": [3, null]})",
                             R"({"phase": "Running", "conditions": "x"})",
                             R"({"containerStatuses": [{"name": "adamant", "state": 3}]})"}) {
    const auto view = ParsePod(Pod(Json::parse(status)));
    ASSERT_NE(view, nullptr);
    EXPECT_NE(view->pod.state, State::kEnded) << status;
  }
}

}  // namespace
}  // namespace adamant::kube
