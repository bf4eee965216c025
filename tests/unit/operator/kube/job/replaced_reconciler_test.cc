// A reconciler that does not know yet that another leads its job.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "operator/kube_client/base/json.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

namespace adamant::kube {
namespace {

class ReplacedReconcilerTest : public JobReconcilerRig {
 protected:
  /// The status has something new to say.
  void ChangeSpec() {
    const Json patch = {{"spec", {{"runPolicy", {{"ttlAfterFinished", "60s"}}}}}};
    view_ = ParseJobObject(
        client_.Patch(kTrainingJobs, kJob.key, PatchType::kMerge, patch).value_or(Json()));
    ASSERT_NE(view_->job, nullptr) << view_->problems;
  }

  std::int64_t ObservedGeneration() {
    return IntAt(client_.Get(kTrainingJobs, kJob.key).value_or(Json()),
                 {"status", "observedGeneration"});
  }
};

TEST_F(ReplacedReconcilerTest, ItDoesNotWriteOverTheStatusThoughItSeesTheJobAsItIs) {
  Lead(Json::object());
  Work();
  const auto old = std::move(reconciler_);
  Lead(Json::object());
  Work();
  ChangeSpec();
  const std::int64_t before = ObservedGeneration();
  ASSERT_LT(before, view_->generation);
  EXPECT_TRUE(absl::IsAborted(old->Work(view_, Objects()).status()));
  EXPECT_EQ(ObservedGeneration(), before);
  Work();
  EXPECT_EQ(ObservedGeneration(), view_->generation);
}

TEST_F(ReplacedReconcilerTest, AnUpgradeWithOtherSettingsLeavesPodsAloneThatAreThere) {
  Lead(Json::object());
  Work();
  const std::vector<Json> before = List(kPods);
  ASSERT_FALSE(before.empty());
  ReconcilerContext upgraded = context_;
  upgraded.pods.image = {
      .name = "registry.example/adamant:2", .pull_policy = "Always", .pull_secrets = {"registry"}};
  reconciler_ = std::make_unique<JobReconciler>(upgraded, view_, [] {});
  Work();
  EXPECT_EQ(List(kPods), before);
  ASSERT_TRUE(client_
                  .Delete(kPods,
                          {kJob.key.ns, "mnist-data-server-0-1"},
                          {.grace_period = std::chrono::seconds(0)})
                  .ok());
  WorkAfter(std::chrono::seconds(10));
  const auto replaced = client_.Get(kPods, {kJob.key.ns, "mnist-data-server-0-2"});
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ((*replaced)["spec"]["containers"][0]["image"], "registry.example/adamant:2");
}

TEST_F(ReplacedReconcilerTest, AUsersChangeReplacesNobody) {
  Lead(Json::object());
  Work();
  ChangeSpec();
  Work();
  EXPECT_EQ(ObservedGeneration(), view_->generation);
}

}  // namespace
}  // namespace adamant::kube
