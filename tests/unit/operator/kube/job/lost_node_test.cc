#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/core/state/messages.h"
#include "tests/unit/operator/kube/job/lost_node_rig.h"

namespace adamant::kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::_;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

using LostNodeTest = LostNodeRig;

constexpr controller::SlotId kWorker{controller::Role::kWorker, 0};

TEST_F(LostNodeTest, UntilItsTimeIsOverNothingHappens) {
  SetNode("node1", "Unknown");
  EXPECT_LE(Work(), seconds(20));
  EXPECT_LE(WorkAfter(seconds(19)), seconds(1)) << "it must look again in time";
  EXPECT_EQ(Names(kPods), kFirstPods);
  EXPECT_FALSE(IsBeingDeleted(kLost));
}

TEST_F(LostNodeTest, ANodeThatIsBackInTimeWasNeverLost) {
  SetNode("node1", "Unknown");
  Work();
  WorkAfter(seconds(19));
  SetNode("node1", "True");
  Work();
  WorkAfter(seconds(100));
  EXPECT_EQ(Names(kPods), kFirstPods);
  EXPECT_FALSE(IsBeingDeleted(kLost));
}

TEST_F(LostNodeTest, ThenItsPodIsReplacedOnANewClaim) {
  SetNode("node1", "False");
  Work();
  EXPECT_LE(WorkAfter(seconds(20)), seconds(30));
  EXPECT_THAT(Names(kPods), Contains(kReplacement));
  EXPECT_EQ(Names(kPods).size(), 5u);
  EXPECT_TRUE(IsBeingDeleted(kLost));
  EXPECT_EQ(ClaimOf(kReplacement), "mnist-parameter-server-0-2");
  EXPECT_THAT(ServersClaims(),
              UnorderedElementsAre("mnist-parameter-server-0-1",
                                   "mnist-parameter-server-0-2",
                                   "mnist-parameter-server-1-1"));
}

// Kubernetes thinks so of all nodes when its API server was away.
TEST_F(LostNodeTest, AProcessThatIsHeardRunsWhateverIsSaidOfItsNode) {
  ServeAll();
  SetNode("node1", "Unknown");
  Work();
  for (int i = 0; i < 20; ++i) {
    for (const controller::ConnectionId connection : {1, 2, 3}) {
      control_.Tell(connection, controller::Heartbeat{});
    }
    WorkAfter(seconds(5));
  }
  EXPECT_EQ(Names(kPods), kFirstPods);
  EXPECT_FALSE(IsBeingDeleted(kLost));
  WorkFor(seconds(20));
  EXPECT_THAT(Names(kPods), Contains(kReplacement)) << "it was heard no more";
}

TEST_F(LostNodeTest, ANodeOutOfServiceIsBelievedToBeWhoeverIsHeard) {
  ServeAll();
  TakeOutOfService("node1");
  Work();
  EXPECT_THAT(Names(kPods), Not(Contains(kLost)));
}

TEST_F(LostNodeTest, ANodeThatIsDeletedIsLostToo) {
  ASSERT_TRUE(client_.Delete(kNodes, {"", "node1"}).ok());
  Work();
  WorkAfter(seconds(19));
  EXPECT_EQ(Names(kPods), kFirstPods);
  WorkAfter(seconds(1));
  EXPECT_THAT(Names(kPods), Contains(kReplacement));
}

// As a controller does that finds one pod too many.
TEST_F(LostNodeTest, APodThatIsDeletedBeforeAnyViewShowsItIsReplaced) {
  DeleteAtOnce("mnist-worker-0-1");
  const JobObjects without = Objects();
  WorkOn(without);
  DeleteAtOnce("mnist-worker-0-2");
  const auto next = WorkOn(without);
  EXPECT_LE(next - clock_.Now(), seconds(5)) << "it must look again in time";
  EXPECT_THAT(Names(kPods), Not(Contains("mnist-worker-0-3")));
  clock_.Advance(seconds(5));
  WorkOn(without);
  WorkAfter(seconds(1));
  EXPECT_THAT(Names(kPods), Contains("mnist-worker-0-3"));
}

TEST_F(LostNodeTest, AllPodsOfALostNodeAreReplaced) {
  SetNode("node3", "Unknown");
  Work();
  WorkAfter(seconds(20));
  EXPECT_THAT(Names(kPods), Contains("mnist-worker-0-2"));
  EXPECT_THAT(Names(kPods), Contains("mnist-data-server-0-2"));
}

// --- Pods that cannot be made

TEST_F(LostNodeTest, AProcessThatIsGivenUpBeforeItsPodCouldBeMadeIsStartedAgain) {
  DeleteAtOnce("mnist-worker-0-1");
  Occupy("mnist-worker-0-2");
  WorkFor(minutes(15) - seconds(1));
  EXPECT_EQ(NewestGeneration(kWorker), 0u);
  WorkFor(seconds(5));
  EXPECT_EQ(NewestGeneration(kWorker), 3u);
}

TEST_F(LostNodeTest, APodThatWasMadeWithoutAnAnswerIsEndedBeforeTheNextIsMade) {
  DeleteAtOnce("mnist-worker-0-1");
  const JobObjects without = Objects();
  server_.SetFaults([](const HttpRequest& request) {
    const bool makes =
        request.method == "POST" && request.body.find("mnist-worker-0-2") != std::string::npos;
    return makes ? MemoryApiServer::Fault::kLoseAnswer : MemoryApiServer::Fault::kNone;
  });
  for (seconds time{0}; time < minutes(15) + seconds(10); time += seconds(1)) {
    WorkOn(without);
    clock_.Advance(seconds(1));
  }
  EXPECT_THAT(Names(kPods), Not(Contains("mnist-worker-0-2")));
  EXPECT_THAT(Names(kPods), Contains("mnist-worker-0-3"));
}

// It was not found by who leads now, and has not heard yet that it is to end.
TEST_F(LostNodeTest, APodIsAskedForUntilItIsMadeThoughAnEarlierProcessFilledItsSlotMeanwhile) {
  const controller::SlotId id{controller::Role::kDataServer, 0};
  Join(1, id);
  DeleteAtOnce("mnist-data-server-0-1");
  Occupy("mnist-data-server-0-2");
  Lead(kSpec);
  Work();
  controller::Join again;
  again.id = id;
  again.uid = "process 1";
  again.incarnation = 1;
  again.generation = 1;
  control_.Tell(2, again);
  WorkFor(seconds(15));
  ASSERT_THAT(control_.Sent<controller::Welcome>(), Contains(Pair(2, _)));
  DeleteAtOnce("mnist-data-server-0-2");
  WorkFor(seconds(2));
  EXPECT_EQ(NewestGeneration(id), 2u);
}

// --- Nodes that take no pods

TEST_F(LostNodeTest, AServerThatToleratesWhatKeepsOthersAwayIsWaitedFor) {
  const Json gpu = {{"key", "gpu"}, {"operator", "Exists"}};
  Json spec = kSpec;
  spec["pods"]["parameterServer"]["spec"]["tolerations"] = Json::array({gpu});
  Lead(spec);
  Work();
  BindTo("node1", kLost);
  Json node = client_.Get(kNodes, {"", "node1"}).value();
  node["spec"]["taints"] = Json::array({{{"key", "gpu"}, {"effect", "NoSchedule"}}});
  ASSERT_TRUE(client_.Update(kNodes, node).ok());
  DeleteAtOnce(kLost);
  WorkFor(seconds(100));
  EXPECT_THAT(Names(kPods), Contains(kReplacement));
  EXPECT_EQ(ClaimOf(kReplacement), "mnist-parameter-server-0-1");
}

TEST_F(LostNodeTest, AServerWhoseVolumeIsOnACordonedNodeGetsAnotherAfterAWhile) {
  Drain("node1", kLost);
  EXPECT_THAT(Names(kPods), Contains(kReplacement));
  WorkFor(seconds(59));
  EXPECT_FALSE(IsBeingDeleted(kReplacement));
  EXPECT_EQ(ClaimOf(kReplacement), "mnist-parameter-server-0-1");
  WorkFor(seconds(2));
  EXPECT_THAT(Names(kPods), Not(Contains(kReplacement)));
  EXPECT_EQ(ClaimOf("mnist-parameter-server-0-3"), "mnist-parameter-server-0-2");
}

TEST_F(LostNodeTest, ANodeThatIsUncordonedInTimeIsWaitedFor) {
  Drain("node1", kLost);
  WorkFor(seconds(50));
  SetCordoned("node1", false);
  WorkFor(seconds(5));
  SetCordoned("node1", true);
  WorkFor(seconds(50));
  SetCordoned("node1", false);
  WorkFor(seconds(100));
  EXPECT_THAT(Names(kPods), Contains(kReplacement));
  EXPECT_EQ(ClaimOf(kReplacement), "mnist-parameter-server-0-1");
}

TEST_F(LostNodeTest, AnApiThatDoesNotAnswerAtFirstIsAskedAgainWhereTheVolumeIs) {
  bool is_made = false;
  server_.SetFaults([&](const HttpRequest& request) {
    is_made = is_made ||
              (request.method == "POST" && request.body.find(kReplacement) != std::string::npos);
    const bool asks = request.method == "GET" &&
                      request.target.find("persistentvolumeclaims/") != std::string::npos;
    return is_made && asks ? MemoryApiServer::Fault::kRefuse : MemoryApiServer::Fault::kNone;
  });
  Drain("node1", kLost);
  ASSERT_THAT(Names(kPods), Contains(kReplacement));
  server_.SetFaults(nullptr);
  WorkFor(seconds(70));
  EXPECT_EQ(ClaimOf("mnist-parameter-server-0-3"), "mnist-parameter-server-0-2");
}

TEST_F(LostNodeTest, AVolumeThatWasMadeByHandNamesItsNodeItself) {
  const Json expression = {
      {"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", {"node1"}}};
  const Json terms = Json::array({{{"matchExpressions", Json::array({expression})}}});
  const Json volume = {
      {"metadata", {{"name", "disk-7"}}},
      {"spec", {{"nodeAffinity", {{"required", {{"nodeSelectorTerms", terms}}}}}}}};
  ASSERT_TRUE(client_.Create(kPersistentVolumes, volume).ok());
  ChangeClaimOf(kLost, {{"spec", {{"volumeName", "disk-7"}}}});
  SetCordoned("node1", true);
  DeleteAtOnce(kLost);
  WorkFor(seconds(70));
  EXPECT_EQ(ClaimOf("mnist-parameter-server-0-3"), "mnist-parameter-server-0-2");
}

TEST_F(LostNodeTest, WhoDoesNotSeeTheClusterAsksForNoVolumeAndLeavesNone) {
  sees_cluster_ = false;
  ChangeClaimOf(kLost, {{"spec", {{"volumeName", "disk-7"}}}});
  int asked = 0;
  server_.SetFaults([&](const HttpRequest& request) {
    asked += request.target.find("/persistentvolumes") != std::string::npos ? 1 : 0;
    return MemoryApiServer::Fault::kNone;
  });
  DeleteAtOnce(kLost);
  WorkFor(seconds(70));
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(ClaimOf(kReplacement), "mnist-parameter-server-0-1");
  EXPECT_THAT(Names(kPods), Not(Contains("mnist-parameter-server-0-3")));
}

TEST_F(LostNodeTest, WhoDoesNotSeeTheClusterGivesNoNodeUp) {
  sees_cluster_ = false;
  SetNode("node1", "Unknown");
  WorkFor(seconds(70));
  EXPECT_EQ(Names(kPods), kFirstPods);
  EXPECT_FALSE(IsBeingDeleted(kLost));
}

TEST_F(LostNodeTest, AVolumeThatIsNeededIsNotLeftWhereverItIs) {
  ServeAll();
  Drain("node1", kLost);
  WorkFor(seconds(200));
  EXPECT_THAT(ServersClaims(),
              UnorderedElementsAre("mnist-parameter-server-0-1", "mnist-parameter-server-1-1"));
}

TEST_F(LostNodeTest, AfterTheSecondTimeThePodIsDeletedByForce) {
  SetNode("node1", "Unknown");
  Work();
  WorkAfter(seconds(20));
  WorkAfter(seconds(29));
  EXPECT_THAT(Names(kPods), Contains(kLost));
  WorkAfter(seconds(1));
  EXPECT_THAT(Names(kPods), Not(Contains(kLost)));
  WorkAfter(seconds(100));
  EXPECT_EQ(Names(kPods).size(), 4u) << "its end is told once";
}

TEST_F(LostNodeTest, APodWhoseNodeIsBackTooLateGoesAndItsReplacementStays) {
  SetNode("node1", "Unknown");
  Work();
  WorkAfter(seconds(25));
  RunOn("node2", kReplacement);
  SetNode("node1", "True");
  Work();
  ConfirmDeletion(kLost);
  WorkAfter(seconds(100));
  EXPECT_THAT(Names(kPods),
              UnorderedElementsAre("mnist-data-server-0-1",
                                   "mnist-parameter-server-0-2",
                                   "mnist-parameter-server-1-1",
                                   "mnist-worker-0-1"));
  EXPECT_FALSE(IsBeingDeleted(kReplacement));
}

TEST_F(LostNodeTest, ANodeOutOfServiceIsNotWaitedFor) {
  TakeOutOfService("node1");
  Work();
  EXPECT_THAT(Names(kPods), Contains(kReplacement));
  EXPECT_THAT(Names(kPods), Not(Contains(kLost)));
}

TEST_F(LostNodeTest, AnOldViewMakesNeitherPodsNorClaims) {
  SetNode("node1", "Unknown");
  Work();
  clock_.Advance(seconds(20));
  const JobObjects old = Objects();
  Work();
  const auto pods = Names(kPods);
  const auto claims = ServersClaims();
  for (int i = 0; i < 3; ++i) {
    WorkOn(old);
  }
  EXPECT_EQ(Names(kPods), pods);
  EXPECT_EQ(ServersClaims(), claims);
}

TEST_F(LostNodeTest, AnotherOperatorFindsWhichClaimIsToBeUsed) {
  SetNode("node1", "Unknown");
  Work();
  WorkAfter(seconds(20));
  Lead(kSpec);
  Work();
  EXPECT_EQ(Names(kPods).size(), 5u);
  EXPECT_EQ(ServersClaims().size(), 3u);
  ASSERT_TRUE(client_.Delete(kPods, {kJob.key.ns, kReplacement}).ok());
  Work();
  WorkAfter(seconds(10));  // the second loss of the slot waits a little
  EXPECT_EQ(ClaimOf("mnist-parameter-server-0-3"), "mnist-parameter-server-0-2");
}

TEST_F(LostNodeTest, TheOldClaimStaysUntilEveryBucketHasItsCopies) {
  SetNode("node1", "Unknown");
  Work();
  WorkAfter(seconds(60));
  EXPECT_EQ(ServersClaims().size(), 3u);
  ServeAll();
  EXPECT_THAT(ServersClaims(),
              UnorderedElementsAre("mnist-parameter-server-0-2", "mnist-parameter-server-1-1"));
}

TEST_F(LostNodeTest, AServerWithTheOnlyCopyOfABucketWaitsForItsClaim) {
  ServeAll();
  SetNode("node1", "Unknown");
  Work();
  WorkFor(seconds(20));
  EXPECT_EQ(ClaimOf(kReplacement), "mnist-parameter-server-0-1");
  EXPECT_EQ(ServersClaims().size(), 2u);
}

class JobBudgetTest : public LostNodeTest {
 protected:
  [[nodiscard]] int MinAvailable() const {
    const auto budgets = List(kPodDisruptionBudgets);
    EXPECT_THAT(Names(kPodDisruptionBudgets), ElementsAre("mnist-parameter-server"));
    return budgets.empty() ? -1 : budgets[0]["spec"]["minAvailable"].get<int>();
  }
};

TEST_F(JobBudgetTest, NoServerMayBeEvictedBeforeEveryBucketHasItsCopiesThenOne) {
  EXPECT_EQ(MinAvailable(), 2);
  ServeAll();
  EXPECT_EQ(MinAvailable(), 1);
}

TEST_F(JobBudgetTest, WhatIsDeletedIsMadeAgain) {
  ASSERT_TRUE(client_.Delete(kPodDisruptionBudgets, {kJob.key.ns, "mnist-parameter-server"}).ok());
  Work();
  EXPECT_EQ(MinAvailable(), 2);
}

TEST_F(JobBudgetTest, NothingIsWrittenWithoutNeed) {
  const std::uint64_t version = server_.version();
  WorkOn(Objects());
  EXPECT_EQ(server_.version(), version);
}

}  // namespace
}  // namespace adamant::kube
