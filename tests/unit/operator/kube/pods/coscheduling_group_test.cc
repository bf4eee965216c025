#include "operator/kube/pods/coscheduling_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/api/orphans.h"
#include "tests/unit/operator/kube/job/refused_job_rig.h"

// The PodGroup of a job in a cluster with the coscheduling plugin.
namespace adamant::kube {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class CoschedulingGroupTest : public RefusedJobTest {
 protected:
  static Json Spec(int workers) {
    return {{"distribution", {{"workers", workers}, {"parameterServers", {{"count", 2}}}}},
            {"pods", {{"scheduling", {{"podGroup", "together"}}}}}};
  }

  void RunAll() {
    SetNode("node1", "True");
    for (const std::string& name : Names(kPods)) {
      RunOn("node1", name);
    }
  }

  void Change(const Json& patch) {
    ASSERT_TRUE(client_.Patch(kPodGroups, group_key_, PatchType::kMerge, patch).ok());
  }

  /// As `kubectl scale` does.
  void Scale(int workers) {
    const Json patch = {{"spec", {{"distribution", {{"workers", workers}}}}}};
    view_ =
        ParseJobObject(client_.Patch(kTrainingJobs, kJob.key, PatchType::kMerge, patch).value());
  }

  [[nodiscard]] Json Group() const {
    return client_.Get(kPodGroups, group_key_).value_or(Json::object());
  }
  [[nodiscard]] std::int64_t MinMember() const { return IntAt(Group(), {"spec", "minMember"}); }

  const ObjectKey group_key_{kJob.key.ns, "together"};
};

TEST_F(CoschedulingGroupTest, IsMadeAndMadeAnewWhereItIsDeleted) {
  Lead(Spec(2));
  Work();
  EXPECT_EQ(MinMember(), 5) << "workers, parameter servers and a data server";
  const Json first = Group();
  EXPECT_EQ(StringAt(first, {"metadata", "labels", kJobUidLabel}), view_->uid);
  EXPECT_EQ(OwnerOf(first).uid, view_->uid);
  RunAll();
  WorkForTenSeconds();
  ASSERT_TRUE(client_.Delete(kPodGroups, group_key_).ok());
  EXPECT_LE(Work(), seconds(10)) << "nobody tells of it";
  WorkForTenSeconds();
  EXPECT_EQ(Group()["spec"], first["spec"]);
  EXPECT_EQ(Group()["metadata"]["ownerReferences"], first["metadata"]["ownerReferences"]);
}

TEST_F(CoschedulingGroupTest, IsPutRightWhereSomebodyHasChangedIt) {
  Lead(Spec(2));
  Work();
  Change({{"spec", {{"minMember", 9}, {"scheduleTimeoutSeconds", 60}}}});
  WorkForTenSeconds();
  EXPECT_EQ(MinMember(), 5);
  EXPECT_EQ(IntAt(Group(), {"spec", "scheduleTimeoutSeconds"}), 60) << "that is its user's";
}

TEST_F(CoschedulingGroupTest, WaitsForNoWorkerThatIsAddedAndForNoneThatIsLess) {
  Lead(Spec(2));
  Work();
  RunAll();
  Scale(6);
  WorkForTenSeconds();
  EXPECT_EQ(MinMember(), 5) << "a server's place must not hang on room for more workers";
  Scale(1);
  WorkForTenSeconds();
  EXPECT_EQ(MinMember(), 4);
}

TEST_F(CoschedulingGroupTest, OfItsUserIsLeftAsItIs) {
  const Json own = {{"metadata", {{"namespace", kJob.key.ns}, {"name", "together"}}},
                    {"spec", {{"minMember", 3}}}};
  ASSERT_TRUE(client_.Create(kPodGroups, own).ok());
  Lead(Spec(2));
  WorkForTenSeconds();
  EXPECT_EQ(MinMember(), 3);
  EXPECT_EQ(WriteFailure(), "");
  ASSERT_TRUE(client_.Delete(kPodGroups, group_key_).ok());
  WorkForTenSeconds();
  EXPECT_EQ(MinMember(), 5) << "without one no pod would be placed";
}

TEST_F(CoschedulingGroupTest, OfAnotherJobIsNamed) {
  Json other = JobObject();
  other["metadata"]["name"] = "other";
  const std::string uid = UidOf(client_.Create(kTrainingJobs, other).value());
  const JobIdentity owner{.key = {kJob.key.ns, "other"}, .uid = uid};
  ASSERT_TRUE(client_.Create(kPodGroups, {{"metadata", MetadataOf(owner, "together")}}).ok());
  Lead(Spec(2));
  WorkForTenSeconds();
  EXPECT_THAT(WriteFailure(),
              HasSubstr("cannot keep PodGroup together: PodGroup team/together is of the "
                        "TrainingJob other"));
}

TEST_F(CoschedulingGroupTest, IsNotAskedForByJobsThatNameNone) {
  bool asked = false;
  server_.SetFaults([&asked](const HttpRequest& request) {
    asked = asked || request.target.find("podgroups") != std::string::npos;
    return MemoryApiServer::Fault::kNone;
  });
  LeadTwoServers();
  WorkForTenSeconds();
  EXPECT_FALSE(asked);
}

}  // namespace
}  // namespace adamant::kube
