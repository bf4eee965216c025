#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "operator/kube/api/custom_resources.h"
#include "tests/simulation/operator/cluster.h"

// A job whose number of workers changes while it runs, in a simulated cluster.
namespace adamant::kube {
namespace {

using orchestration::Cluster;
using orchestration::kJobKey;
using orchestration::seconds;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class JobScaleTest : public testing::Test {
 protected:
  JobScaleTest() {
    cluster_.user.Apply({{"distribution", {{"workers", 2}}}, {"runPolicy", {{"epochs", 100000}}}});
    AwaitWorkers(2);
  }

  void TearDown() override { EXPECT_EQ(cluster_.world.violations.first(), ""); }

  void Scale(std::int64_t workers) {
    const Json patch = {{"spec", {{"distribution", {{"workers", workers}}}}}};
    EXPECT_TRUE(cluster_.world.admin.Patch(kTrainingJobs, kJobKey, PatchType::kMerge, patch).ok());
  }

  [[nodiscard]] Json Status() {
    return cluster_.world.admin.Get(kTrainingJobs, kJobKey)
        .value_or(Json())
        .value("status", Json());
  }

  [[nodiscard]] bool HasWorkers(std::int64_t number) {
    const Json status = Status();
    for (const char* count : {"desired", "pods", "ready"}) {
      if (IntAt(status, {"roles", "worker", count}) != number) {
        return false;
      }
    }
    return true;
  }

  void AwaitWorkers(std::int64_t number) {
    cluster_.RunUntil([&] { return HasWorkers(number); },
                      std::chrono::minutes(2),
                      "there are not " + std::to_string(number) + " workers");
  }

  std::string Valid() {
    const Json status = Status();
    for (const Json& condition : status.at("conditions")) {
      if (condition["type"] == "Valid") {
        return condition["status"].get<std::string>() + ": " +
               condition["message"].get<std::string>();
      }
    }
    return "none";
  }

  std::set<std::string> WorkerPods() {
    std::set<std::string> names;
    const auto pods = cluster_.world.admin.List(kPods, {.ns = kJobKey.ns});
    for (const Json& pod : pods.value_or(std::vector<Json>())) {
      if (KeyOf(pod).name.find("-worker-") != std::string::npos) {
        names.insert(KeyOf(pod).name);
      }
    }
    return names;
  }

  Cluster cluster_{1};
};

TEST_F(JobScaleTest, WorkersComeAndGoAndNoneIsCountedAsRestarted) {
  Scale(4);
  AwaitWorkers(4);
  EXPECT_THAT(WorkerPods(),
              UnorderedElementsAre(
                  "mnist-worker-0-1", "mnist-worker-1-1", "mnist-worker-2-1", "mnist-worker-3-1"));
  Scale(1);
  AwaitWorkers(1);
  Scale(2);
  AwaitWorkers(2);
  EXPECT_TRUE(WorkerPods().contains("mnist-worker-1-2"));
  EXPECT_EQ(IntAt(Status(), {"restarts"}), 0);
}

TEST_F(JobScaleTest, AnotherOperatorTakesOverInTheMiddle) {
  for (const std::int64_t workers : {4, 1, 3}) {
    Scale(workers);
    cluster_.RunFor(std::chrono::milliseconds(300));
    cluster_.ChangeLeader();
    AwaitWorkers(workers);
  }
  EXPECT_EQ(IntAt(Status(), {"restarts"}), 0);
}

TEST_F(JobScaleTest, ANumberThatIsNotValidChangesNothingAlsoForAnotherOperator) {
  Scale(900);
  cluster_.RunFor(seconds(20));
  EXPECT_THAT(Valid(), HasSubstr("False: spec.distribution.workers: 900 workers"));
  EXPECT_TRUE(HasWorkers(2));
  cluster_.ChangeLeader();
  cluster_.RunFor(seconds(20));
  EXPECT_THAT(Valid(), HasSubstr("False: spec.distribution.workers: 900 workers"));
  EXPECT_TRUE(HasWorkers(2));
  Scale(3);
  AwaitWorkers(3);
  EXPECT_THAT(Valid(), HasSubstr("True"));
}

TEST_F(JobScaleTest, ASuspendedJobIsResumedWithTheNumberThatItWasGiven) {
  cluster_.user.Suspend();
  cluster_.RunUntil([&] { return cluster_.user.PhaseNow() == "Suspended"; },
                    std::chrono::minutes(2),
                    "it is not suspended");
  Scale(1);
  cluster_.RunFor(seconds(20));
  EXPECT_TRUE(cluster_.nodes.idle());
  cluster_.user.Resume();
  AwaitWorkers(1);
  EXPECT_FALSE(WorkerPods().contains("mnist-worker-1-2"));
}

}  // namespace
}  // namespace adamant::kube
