#include "operator/kube/pods/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/pods/objects/pod_object.h"
#include "operator/kube/pods/pod_view.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

// What Kueue is told of a job's pods, as tried with Kueue itself (docs/operations.md).
namespace adamant::kube {
namespace {

using controller::Role;
using controller::SlotId;
using controller::StartProcess;
using std::chrono::seconds;
using testing::Contains;
using testing::Not;

constexpr char kFinalizer[] = "kueue.x-k8s.io/managed";
const Json kQueue = {{"scheduling", {{"kueueQueue", "research"}}}};

Json PodOf(const SlotId& id, const PodGroup& group) {
  const Json spec = {{"distribution", {{"workers", 4}, {"parameterServers", {{"count", 3}}}}},
                     {"pods", kQueue}};
  const StartProcess process{.id = id, .generation = 1};
  return PodObject(kJob, *ReadTestJob(spec), process, 1, kPodSettings, group);
}

bool IsInGroup(const Json& pod) { return !ReadGroup(pod).name.empty(); }

TEST(GangTest, PodsAreOneGroupOfKueueWhereAQueueIsNamed) {
  for (const Role role : {Role::kWorker, Role::kDataServer, Role::kParameterServer}) {
    const Json pod = PodOf({role, 0}, {.name = GroupName(kJob.uid, 7)});
    const Json& metadata = pod["metadata"];
    EXPECT_EQ(metadata["labels"]["kueue.x-k8s.io/queue-name"], "research");
    EXPECT_EQ(metadata["labels"]["kueue.x-k8s.io/pod-group-name"], kJob.uid + "-7");
    EXPECT_EQ(metadata["annotations"]["kueue.x-k8s.io/pod-group-total-count"], "8");
    EXPECT_FALSE(metadata["labels"].contains("scheduling.x-k8s.io/pod-group"));
  }
}

// Of one that has ended with code 0 Kueue takes no replacement.
TEST(GangTest, APodOfAGroupThatIsDeletedDoesNotCountAsDone) {
  const Json told = {{"name", "ADAMANT_SIGNALLED_EXIT_CODE"}, {"value", "143"}};
  EXPECT_THAT(PodOf({Role::kWorker, 0}, {.name = "group"})["spec"]["containers"][0]["env"],
              Contains(told));
  const Json plain = PodObject(kJob, *ReadTestJob(), {{Role::kWorker, 0}, 1}, 1, kPodSettings);
  EXPECT_THAT(plain["spec"]["containers"][0]["env"], Not(Contains(told)));
}

// Others Kueue would delete, as more than the group was made for.
TEST(GangTest, WorkersThatAGroupWasNotMadeForAreQueuedAlone) {
  const PodGroup group{.name = "group", .pods = 6};  // with 2 workers
  EXPECT_TRUE(IsInGroup(PodOf({Role::kWorker, 1}, group)));
  EXPECT_TRUE(IsInGroup(PodOf({Role::kParameterServer, 2}, group)));
  const Json more = PodOf({Role::kWorker, 2}, group);
  EXPECT_FALSE(IsInGroup(more));
  EXPECT_FALSE(more["metadata"].contains("annotations"));
  EXPECT_EQ(more["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "research");
  EXPECT_EQ(PodOf({Role::kWorker, 1},
                  group)["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"],
            "6");
}

TEST(GangTest, WhoseFirstPodIsDoneIsQueuedAlone) {
  const PodGroup group{.name = "group", .pods = 8, .done = {{Role::kWorker, 1}}};
  EXPECT_TRUE(IsInGroup(PodOf({Role::kWorker, 0}, group)));
  EXPECT_FALSE(IsInGroup(PodOf({Role::kWorker, 1}, group)));
}

TEST(GangTest, AGroupIsWhatItsPodsSay) {
  const auto view = [](const char* name, std::uint32_t slot, std::optional<int> exit_code) {
    PodView pod;
    pod.group = {.name = name, .pods = 8};
    pod.pod.process.id = {Role::kWorker, slot};
    pod.pod.exit_code = exit_code;
    return std::make_shared<const PodView>(pod);
  };
  const PodGroup group =
      GroupOf("new", {view("new", 0, 143), view("new", 1, 0), view("old", 2, 0)});
  EXPECT_EQ(group.name, "new");
  EXPECT_EQ(group.pods, 8);
  EXPECT_EQ(group.done, (std::set<SlotId>{{Role::kWorker, 1}}));
  EXPECT_EQ(GroupOf("none", {view("new", 0, 0)}).pods, 0);
}

/// A job whose pods Kueue holds, as its webhook does.
class GangOfJobTest : public JobReconcilerRig {
 protected:
  static constexpr char kLost[] = "mnist-parameter-server-0-1";

  GangOfJobTest() {
    SetNode("node1", "True");
    SetNode("node2", "True");
    Lead({{"distribution",
           {{"workers", 1}, {"parameterServers", {{"count", 1}, {"copies", 1}, {"buckets", 1}}}}},
          {"pods", kQueue}});
    Work();
    for (const std::string& pod : Names(kPods)) {
      Change(kPods, pod, {{"metadata", {{"finalizers", Json::array({kFinalizer})}}}});
      RunOn(pod == kLost ? "node2" : "node1", pod);
    }
    Work();
  }

  void Change(const Resource& resource, const std::string& name, const Json& change) {
    ASSERT_TRUE(client_.Patch(resource, {kJob.key.ns, name}, PatchType::kMerge, change).ok());
  }

  void SetSuspended(bool suspended) {
    Change(kTrainingJobs, kJob.key.name, {{"spec", {{"runPolicy", {{"suspend", suspended}}}}}});
    view_ = ParseJobObject(client_.Get(kTrainingJobs, kJob.key).value());
    for (int i = 0; i < 40; ++i) {
      WorkAfter(seconds(1));
    }
  }

  /// Of how many pods Kueue is told that their group ends with them.
  [[nodiscard]] std::int64_t Told() const {
    return std::ranges::count_if(List(kPods), [](const Json& pod) { return ReadGroup(pod).ends; });
  }
};

TEST_F(GangOfJobTest, TheGroupOfAJobThatGoesOnGoesOn) {
  WorkAfter(seconds(1));
  EXPECT_EQ(Names(kPods).size(), 3U);
  EXPECT_EQ(Told(), 0);
}

// Else Kueue would wait for others in their place, keep the quota, and let no pod go.
TEST_F(GangOfJobTest, WithAJobItsGroupEnds) {
  SetSuspended(true);
  EXPECT_EQ(Told(), 1) << "one of them is enough";
}

// As when the leader ended before it could.
TEST_F(GangOfJobTest, AnEarlierStartsGroupEndsToo) {
  for (const std::string& pod : Names(kPods)) {
    Change(kPods, pod, {{"metadata", {{"labels", {{"kueue.x-k8s.io/pod-group-name", "old"}}}}}});
  }
  Work();
  EXPECT_EQ(Told(), 1);
}

// Else Kueue takes it for one that runs, and deletes its replacement.
TEST_F(GangOfJobTest, OfAPodThatIsDeletedByForceKueueIsToldThatItHasFailed) {
  SetNode("node2", "Unknown");
  Work();
  WorkAfter(seconds(49));
  EXPECT_EQ(client_.Get(kPods, {kJob.key.ns, kLost}).value()["status"]["phase"], "Running");
  WorkAfter(seconds(1));
  const auto lost = client_.Get(kPods, {kJob.key.ns, kLost});
  ASSERT_TRUE(lost.ok()) << "its finalizer is on it";
  EXPECT_EQ((*lost)["status"]["phase"], "Failed");
  EXPECT_TRUE(IsBeingDeleted(kLost));
}

TEST_F(GangOfJobTest, EachGroupIsToldOnce) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(EndGroups(client_, Objects().pods).ok());
    EXPECT_EQ(Told(), 1);
  }
}

TEST_F(GangOfJobTest, WhatIsGoneOrAnotherByNowNeedsNoWord) {
  const PodViews old = Objects().pods;
  for (const std::string& pod : Names(kPods)) {
    Change(kPods, pod, {{"metadata", {{"finalizers", nullptr}}}});
    ASSERT_TRUE(client_.Delete(kPods, {kJob.key.ns, pod}, {.grace_period = seconds(0)}).ok());
  }
  EXPECT_TRUE(EndGroups(client_, old).ok());
}

// Kubelet tells of the container before it tells of the pod, and Kueue goes by the pod.
TEST(GangTest, APodOfAGroupHasEndedWhenKueueSeesThatItHas) {
  Json pod = PodOf({Role::kWorker, 0}, {.name = "group"});
  pod["status"] = {
      {"phase", "Running"},
      {"containerStatuses",
       Json::array({{{"name", "adamant"}, {"state", {{"terminated", {{"exitCode", 137}}}}}}})}};
  using State = ObservedPod::State;
  EXPECT_EQ(ParsePod(pod)->pod.state, State::kEnded);
  pod["metadata"]["finalizers"] = Json::array({kFinalizer});
  EXPECT_EQ(ParsePod(pod)->pod.state, State::kRunning);
  pod["status"]["phase"] = "Failed";
  EXPECT_EQ(ParsePod(pod)->pod.state, State::kEnded);
}

}  // namespace
}  // namespace adamant::kube
