#include "operator/kube/job/orphan_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/pods/coscheduling_group.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

// What jobs left behind that do not exist any more, and that no new job's name brings to light.
namespace adamant::kube {
namespace {

class OrphanSweepTest : public JobReconcilerRig {
 protected:
  /// An object of a job named `job`, of that UID.
  void Make(const Resource& resource,
            const std::string& name,
            const std::string& job,
            const std::string& uid) {
    const JobIdentity owner{.key = {kJob.key.ns, job}, .uid = uid};
    ASSERT_TRUE(client_.Create(resource, {{"metadata", MetadataOf(owner, name)}}).ok());
  }

  /// Returns its UID.
  std::string MakeJob(const std::string& name) {
    Json job = JobObject();
    job["metadata"]["name"] = name;
    return UidOf(client_.Create(kTrainingJobs, job).value());
  }

  [[nodiscard]] bool IsThere(const Resource& resource, const std::string& name) const {
    const auto found = client_.Get(resource, {kJob.key.ns, name});
    return found.ok() && StringAt(*found, {"metadata", "deletionTimestamp"}).empty();
  }

  OrphanSweep sweep_{client_, {}, [](const auto&, const auto&) { return false; }};
};

constexpr Resource kKinds[] = {kPods,
                               kPersistentVolumeClaims,
                               kConfigMaps,
                               kPodDisruptionBudgets,
                               kNetworkPolicies,
                               kShardMaps,
                               kPodGroups};

TEST_F(OrphanSweepTest, WhatTwoSweepsFindOfAJobThatIsGoneIsDeleted) {
  for (const Resource& resource : kKinds) {
    Make(resource, "left", "gone", "uid-of-gone");
  }
  EXPECT_EQ(sweep_.Sweep(), 0U);
  EXPECT_TRUE(sweep_.has_found()) << "the next one should come soon";
  for (const Resource& resource : kKinds) {
    EXPECT_TRUE(IsThere(resource, "left")) << resource.kind;
  }
  EXPECT_EQ(sweep_.Sweep(), std::size(kKinds));
  EXPECT_FALSE(sweep_.has_found());
  for (const Resource& resource : kKinds) {
    EXPECT_FALSE(IsThere(resource, "left")) << resource.kind;
  }
}

TEST_F(OrphanSweepTest, WhatIsOfAJobThatExistsStays) {
  const std::string uid = MakeJob("there");
  Make(kPods, "there-worker-0-1", "there", uid);
  Make(kPersistentVolumeClaims, "there-output", "there", uid);
  Make(kConfigMaps, "earlier-state", "there", "uid-of-an-earlier-one");
  sweep_.Sweep();
  EXPECT_EQ(sweep_.Sweep(), 1U) << "what is of an earlier job of the name";
  EXPECT_TRUE(IsThere(kPods, "there-worker-0-1"));
  EXPECT_TRUE(IsThere(kPersistentVolumeClaims, "there-output"));
  EXPECT_FALSE(IsThere(kConfigMaps, "earlier-state"));
}

TEST_F(OrphanSweepTest, WhatIsSomebodysStays) {
  const JobIdentity gone{.key = {kJob.key.ns, "gone"}, .uid = "uid-of-gone"};
  Json kept = {{"metadata", MetadataOf(gone, "kept")}};  // kubectl delete --cascade=orphan
  kept["metadata"].erase("ownerReferences");
  ASSERT_TRUE(client_.Create(kPersistentVolumeClaims, kept).ok());
  Json unlabelled = {{"metadata", MetadataOf(gone, "unlabelled")}};
  unlabelled["metadata"].erase("labels");
  ASSERT_TRUE(client_.Create(kPersistentVolumeClaims, unlabelled).ok());
  sweep_.Sweep();
  EXPECT_EQ(sweep_.Sweep(), 0U);
  EXPECT_TRUE(IsThere(kPersistentVolumeClaims, "kept"));
  EXPECT_TRUE(IsThere(kPersistentVolumeClaims, "unlabelled"));
}

TEST_F(OrphanSweepTest, AKindThatTheClusterDoesNotKnowIsPassedOver) {
  Make(kShardMaps, "left", "gone", "uid-of-gone");
  server_.SetAnswers([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.target.find("/podgroups") == std::string::npos) {
      return std::nullopt;
    }
    return HttpResponse{.status = 404, .headers = {}, .body = "404 page not found"};
  });
  sweep_.Sweep();
  EXPECT_EQ(sweep_.Sweep(), 1U);
}

TEST_F(OrphanSweepTest, OneSweepDeletesAFew) {
  for (int i = 0; i < 25; ++i) {
    Make(kPods, "left-" + std::to_string(i), "gone", "uid-of-gone");
  }
  sweep_.Sweep();
  EXPECT_EQ(sweep_.Sweep(), OrphanSweep::kMostDeleted);
  EXPECT_EQ(sweep_.Sweep(), 5U);
}

TEST_F(OrphanSweepTest, NothingIsDeletedWhileTheApiDoesNotSayThatTheJobIsGone) {
  Make(kPods, "left", "gone", "uid-of-gone");
  server_.SetFaults([](const HttpRequest& request) {
    return request.target.find("/trainingjobs/") != std::string::npos
               ? MemoryApiServer::Fault::kRefuse
               : MemoryApiServer::Fault::kNone;
  });
  sweep_.Sweep();
  EXPECT_EQ(sweep_.Sweep(), 0U);
  server_.SetFaults(nullptr);
  EXPECT_EQ(sweep_.Sweep(), 0U) << "now it is found once";
  EXPECT_EQ(sweep_.Sweep(), 1U);
}

TEST_F(OrphanSweepTest, OneOfSomeNamespacesLooksNowhereElse) {
  Make(kPods, "left", "gone", "uid-of-gone");
  std::vector<std::string> targets;
  server_.SetFaults([&](const HttpRequest& request) {
    targets.push_back(request.target);
    return MemoryApiServer::Fault::kNone;
  });
  const auto none = [](const auto&, const auto&) { return false; };
  OrphanSweep elsewhere(client_, {"a", "b"}, none);
  elsewhere.Sweep();
  EXPECT_EQ(elsewhere.Sweep(), 0U);
  EXPECT_THAT(targets, testing::SizeIs(2 * 2 * std::size(kKinds)));
  EXPECT_THAT(targets,
              testing::Each(testing::AnyOf(testing::HasSubstr("/namespaces/a/"),
                                           testing::HasSubstr("/namespaces/b/"))));
  OrphanSweep here(client_, {"a", kJob.key.ns}, none);
  here.Sweep();
  EXPECT_EQ(here.Sweep(), 1U);
}

TEST_F(OrphanSweepTest, JobsThatAreKnownAreNotAskedFor) {
  Make(kPods, "there", "known", "uid-of-known");
  int asked = 0;
  server_.SetFaults([&](const HttpRequest& request) {
    asked += request.target.find("/trainingjobs/") != std::string::npos ? 1 : 0;
    return MemoryApiServer::Fault::kNone;
  });
  OrphanSweep sweep(client_, {}, [](const ObjectKey& job, const std::string& uid) {
    return job == ObjectKey{kJob.key.ns, "known"} && uid == "uid-of-known";
  });
  sweep.Sweep();
  EXPECT_EQ(sweep.Sweep(), 0U);
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace adamant::kube
