#include "operator/kube/job/job_reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/api/job_identity.h"
#include "tests/simulation/operator/cluster.h"

// Whole jobs in a simulated cluster in which nothing goes wrong but what a test does.
namespace adamant::kube {
namespace {

using orchestration::Cluster;
using orchestration::kJobKey;
using orchestration::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class JobReconcilerTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(cluster_.world.violations.first(), ""); }

  void Await(const std::string& phase) {
    cluster_.RunUntil([&] { return cluster_.user.PhaseNow() == phase; },
                      std::chrono::minutes(2),
                      "it does not become " + phase);
  }

  void AwaitGone() {
    cluster_.RunUntil(
        [&] { return cluster_.user.Belongings().empty(); }, std::chrono::minutes(2), "it stays");
  }

  /// Requests to the API while nothing happens for a minute.
  std::uint64_t RequestsInAMinute() {
    const std::uint64_t before = cluster_.world.api.requests();
    cluster_.RunFor(std::chrono::minutes(1));
    return cluster_.world.api.requests() - before;
  }

  /// The leader dies, and the first request of the next one whose target has this in it fails.
  void ChangeLeaderWithout(const std::string& target) {
    cluster_.ChangeLeader();
    std::swap(cluster_.operators.front(), cluster_.operators.back());
    bool failed = false;
    cluster_.world.api.SetFaults([&](const HttpRequest& request) {
      const bool hit =
          !failed && request.method == "GET" && request.target.find(target) != std::string::npos;
      failed = failed || hit;
      return hit ? MemoryApiServer::Fault::kRefuse : MemoryApiServer::Fault::kNone;
    });
    cluster_.RunUntil([&] { return failed; }, std::chrono::minutes(1), "nobody asks " + target);
    cluster_.RunFor(seconds(1));
    cluster_.world.api.SetFaults(nullptr);
  }

  Json Job() { return cluster_.world.admin.Get(kTrainingJobs, kJobKey).value_or(Json()); }

  std::string Condition(const std::string& type) {
    const Json job = Job();
    for (const Json& condition : job["status"]["conditions"]) {
      if (condition["type"] == type) {
        return condition["status"].get<std::string>() + ": " +
               condition["message"].get<std::string>();
      }
    }
    return "none";
  }

  void Delete(const Resource& resource, const std::string& name) {
    EXPECT_TRUE(cluster_.world.admin.Delete(resource, {kJobKey.ns, name}).ok()) << name;
  }

  std::vector<std::string> Names(const Resource& resource) {
    std::vector<std::string> names;
    const auto objects = cluster_.world.admin.List(resource, {.ns = kJobKey.ns});
    for (const Json& object : objects.value_or(std::vector<Json>())) {
      names.push_back(KeyOf(object).name);
    }
    return names;
  }

  Cluster cluster_{1};
};

TEST_F(JobReconcilerTest, AJobRunsToItsEndAndCleansUp) {
  cluster_.user.Apply();
  Await("Running");
  EXPECT_THAT(Names(kPods), Contains("mnist-worker-0-1"));
  EXPECT_THAT(Names(kConfigMaps), Contains("mnist-state"));
  EXPECT_THAT(Names(kShardMaps), Contains("mnist-0"));
  Await("Succeeded");
  cluster_.RunFor(seconds(20));
  EXPECT_TRUE(cluster_.nodes.idle());
  EXPECT_LE(RequestsInAMinute(), 2U);
}

TEST_F(JobReconcilerTest, AServerThatSharesItsNodeMovesOnceAndTheJobGoesOn) {
  cluster_.world.spreads = true;
  const Json servers = {{"count", 3}, {"copies", 2}, {"buckets", 4}};  // by chance two on a node
  const Json rule = {{"cause", "Disruption"}, {"action", "FailJob"}};
  cluster_.user.Apply({{"distribution", {{"parameterServers", servers}}},
                       {"runPolicy", {{"epochs", 100000}, {"failureRules", {rule}}}}});
  const auto moves = [this] {
    std::int64_t count = 0;
    for (const std::string& name : Names(kPods)) {
      count += name.find("parameter-server") != std::string::npos && name.ends_with("-2") ? 1 : 0;
    }
    return count;
  };
  cluster_.RunUntil([&] { return moves() > 0; }, std::chrono::minutes(2), "no server moves");
  const auto claims = Names(kPersistentVolumeClaims);
  EXPECT_TRUE(std::ranges::any_of(claims, [](const std::string& name) {
    return name.find("parameter-server") != std::string::npos && name.ends_with("-2");
  }));
  cluster_.RunFor(std::chrono::minutes(5));
  EXPECT_EQ(moves(), 1) << "another only after a while";
  EXPECT_EQ(IntAt(Job(), {"status", "restarts"}), 0);
}

TEST_F(JobReconcilerTest, EpochsThatAreShortAreNotAnEventEach) {
  cluster_.user.Apply({{"runPolicy", {{"epochs", 20}}}});
  Await("Succeeded");
  cluster_.RunFor(seconds(5));
  int opened = 0;
  const auto events = cluster_.world.admin.List(kEvents, {.ns = kJobKey.ns});
  for (const Json& event : events.value_or(std::vector<Json>())) {
    opened += event["reason"] == "EpochOpened" ? 1 : 0;
  }
  EXPECT_GE(opened, 1);
  EXPECT_LE(opened, 3) << "once a minute at most";
}

TEST_F(JobReconcilerTest, ARequestedCheckpointIsAnsweredInTheStatusForGood) {
  cluster_.user.Apply();
  Await("Running");
  const Json request = {
      {"metadata", {{"annotations", {{kCheckpointAnnotation, "the user's word"}}}}}};
  ASSERT_TRUE(cluster_.world.admin.Patch(kTrainingJobs, kJobKey, PatchType::kMerge, request).ok());
  const auto answered = [this] {
    return StringAt(Job(), {"status", "checkpoint", "request"}) == "the user's word";
  };
  cluster_.RunUntil(answered, std::chrono::minutes(1), "it is not answered");
  EXPECT_GT(IntAt(Job(), {"status", "checkpoint", "snapshot"}), 0);
  Await("Succeeded");
  EXPECT_TRUE(answered());
}

TEST_F(JobReconcilerTest, ASuspendedJobHasNoProcessesAndGoesOnWhenItIsResumed) {
  cluster_.user.Apply();
  Await("Running");
  cluster_.user.Suspend();
  Await("Suspended");
  cluster_.RunFor(seconds(20));
  EXPECT_TRUE(cluster_.nodes.idle());
  EXPECT_THAT(Names(kPersistentVolumeClaims), Not(IsEmpty()));
  EXPECT_LE(RequestsInAMinute(), 10U);
  cluster_.user.Resume();
  Await("Succeeded");
}

TEST_F(JobReconcilerTest, ASuspendedJobStaysSoWhenAnotherOperatorLeads) {
  cluster_.user.Apply();
  Await("Running");
  cluster_.user.Suspend();
  Await("Suspended");
  cluster_.RunFor(seconds(20));
  const auto pods = Names(kPods);
  cluster_.ChangeLeader();
  cluster_.RunFor(seconds(20));
  EXPECT_EQ(Names(kPods), pods);
  EXPECT_EQ(cluster_.user.PhaseNow(), "Suspended");
  cluster_.user.Resume();
  Await("Succeeded");
}

TEST_F(JobReconcilerTest, AJobDeletedAndMadeAgainUnderItsNameIsAnotherOne) {
  cluster_.user.Apply();
  Await("Running");
  const std::string old = cluster_.user.uid();
  cluster_.user.Delete();
  cluster_.user.Apply();
  ASSERT_NE(cluster_.user.uid(), old);
  Await("Succeeded");
  cluster_.user.Delete();
  AwaitGone();
}

TEST_F(JobReconcilerTest, ADeletedJobDoesNotBeginAnewWhereTheCacheStillShowsIt) {
  cluster_.user.Apply();
  Await("Running");
  cluster_.operators.front()->Crash();
  cluster_.world.api.HoldWatches(cluster_.world.api.version());
  cluster_.user.Delete();
  cluster_.RunFor(seconds(20));
  ASSERT_THAT(Names(kConfigMaps), IsEmpty());
  cluster_.operators.back()->Lead();
  cluster_.RunFor(seconds(5));
  EXPECT_THAT(Names(kConfigMaps), IsEmpty());
}

TEST_F(JobReconcilerTest, APodOfAnotherOwnerIsWaitedOut) {
  const Json stranger = {{"metadata",
                          {{"name", "mnist-worker-0-1"},
                           {"namespace", kJobKey.ns},
                           {"labels", {{kJobUidLabel, "of-another-owner"}}}}},
                         {"spec", {{"containers", Json::array({{{"name", "adamant"}}})}}}};
  ASSERT_TRUE(cluster_.world.admin.Create(kPods, stranger).ok());
  cluster_.user.Apply();
  cluster_.RunFor(seconds(20));
  EXPECT_EQ(cluster_.user.PhaseNow(), "Starting");
  EXPECT_THAT(Names(kPods), Contains("mnist-worker-0-1"));
  EXPECT_THAT(Names(kPods), Not(Contains("mnist-worker-0-2")));
  EXPECT_LE(RequestsInAMinute(), 200U);
  Delete(kPods, "mnist-worker-0-1");
  Await("Succeeded");
}

TEST_F(JobReconcilerTest, ASpecThatIsNotValidIsToldOnce) {
  cluster_.user.Apply({{"model", {{"reference", "no-such-model"}}}});
  Await("Failed");
  EXPECT_THAT(Condition("Valid"), HasSubstr("False: spec.model.reference"));
  EXPECT_THAT(Names(kPods), IsEmpty());
  EXPECT_EQ(RequestsInAMinute(), 0U);
}

TEST_F(JobReconcilerTest, ATemplateThatTheApiRefusesFailsTheJob) {
  cluster_.world.api.SetFaults([](const HttpRequest& request) {
    const bool pod =
        request.method == "POST" && request.target.ends_with("/pods?fieldValidation=Strict");
    return pod ? MemoryApiServer::Fault::kInvalid : MemoryApiServer::Fault::kNone;
  });
  cluster_.user.Apply();
  Await("Failed");
  EXPECT_THAT(Condition("Failed"), HasSubstr("the API refuses the pod of"));
  cluster_.RunFor(seconds(20));
  EXPECT_LE(RequestsInAMinute(), 2U);
}

TEST_F(JobReconcilerTest, ADeletedStateIsWrittenAnewByWhoKnowsIt) {
  cluster_.user.Apply();
  Await("Running");
  Delete(kConfigMaps, "mnist-state");
  Delete(kShardMaps, "mnist-0");
  Await("Succeeded");
  EXPECT_THAT(Names(kConfigMaps), Contains("mnist-state"));
}

// The Cluster's checker sees to it that nobody writes under the term of another.
TEST_F(JobReconcilerTest, ALeaderTakesATermOfItsOwnWhicheverOfItsFirstRequestsFails) {
  cluster_.user.Apply();
  Await("Running");
  const auto term = [this] { return cluster_.checker.StateOf(cluster_.user.uid())->term; };
  const std::uint64_t before = term();
  for (const char* target : {"/configmaps/mnist-state", "/shardmaps?", "/namespaces/team/pods?"}) {
    ChangeLeaderWithout(target);
  }
  EXPECT_EQ(term(), before + 3);
  Await("Succeeded");
}

TEST_F(JobReconcilerTest, AJobWhoseStateWasDeletedFailsWhenAnotherOperatorLeads) {
  cluster_.user.Apply();
  Await("Running");
  cluster_.operators.front()->Crash();
  Delete(kConfigMaps, "mnist-state");
  cluster_.operators.back()->Lead();
  Await("Failed");
  EXPECT_THAT(Condition("Failed"), HasSubstr("True: ConfigMap team/mnist-state is missing"));
  cluster_.RunFor(seconds(20));
  EXPECT_TRUE(cluster_.nodes.idle());
  EXPECT_LE(RequestsInAMinute(), 2U);
}

TEST_F(JobReconcilerTest, AJobWhoseShardMapWasDeletedFailsWhenAnotherOperatorLeads) {
  cluster_.user.Apply();
  Await("Running");
  cluster_.operators.front()->Crash();
  Delete(kShardMaps, "mnist-0");
  cluster_.operators.back()->Lead();
  Await("Failed");
  EXPECT_THAT(Condition("Failed"), HasSubstr("ShardMaps of team/mnist are missing"));
  cluster_.RunFor(seconds(20));
  EXPECT_TRUE(cluster_.nodes.idle());
  EXPECT_LE(RequestsInAMinute(), 2U);
}

TEST_F(JobReconcilerTest, AnApiThatIsAwayIsNotAskedAllTheTime) {
  cluster_.user.Apply();
  Await("Running");
  cluster_.operators.front()->transport().SetTroubles({.refused = 1});
  const std::size_t before = cluster_.operators.front()->transport().tries();
  cluster_.RunFor(std::chrono::minutes(1));
  EXPECT_LE(cluster_.operators.front()->transport().tries() - before, 400U);
  EXPECT_FALSE(cluster_.nodes.idle());
  cluster_.operators.front()->transport().SetTroubles({});
  Await("Succeeded");
}

}  // namespace
}  // namespace adamant::kube
