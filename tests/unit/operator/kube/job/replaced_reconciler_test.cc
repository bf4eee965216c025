// A reconciler that does not know yet that another leads its job.

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

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

TEST_F(ReplacedReconcilerTest, AUsersChangeReplacesNobody) {
  Lead(Json::object());
  Work();
  ChangeSpec();
  Work();
  EXPECT_EQ(ObservedGeneration(), view_->generation);
}

}  // namespace
}  // namespace adamant::kube
