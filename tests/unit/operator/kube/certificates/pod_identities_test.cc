#include "operator/kube/certificates/pod_identities.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/operator/kube/certificates/seen_pods.h"
#include "tests/unit/services/common/security/identities.h"

namespace adamant::kube {
namespace {

class PodIdentitiesTest : public testing::Test {
 protected:
  [[nodiscard]] absl::StatusOr<security::PeerIdentity> Find(const PodView& pod) const {
    return identities_.Find({.name_space = pod.ns,
                             .pod_name = pod.pod.name,
                             .pod_uid = pod.pod.uid,
                             .service_account = "default",
                             .expires = {}});
  }

  static PodView Output(OutputWork work) {
    PodView pod = SeenPods::Worker();
    pod.output = work;
    pod.pod.process = {};
    const std::string label = work.snapshot ? std::to_string(*work.snapshot) : kExportOfTrial;
    pod.pod.name = "digits-export-" + label;
    pod.pod.uid = "export-" + label;
    return pod;
  }

  static PodView Export(std::uint64_t snapshot) { return Output({.snapshot = snapshot}); }

  SeenPods seen_;
  PodIdentities identities_{"adamant.local", seen_.Sources()};
};

TEST_F(PodIdentitiesTest, APodIsTheProcessThatItWasMadeFor) {
  seen_.See(SeenPods::Worker());
  const auto identity = Find(SeenPods::Worker());
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(*identity, security::kWorker);
}

TEST_F(PodIdentitiesTest, AnExportIsThatOfItsSnapshot) {
  seen_.See(Export(7));
  seen_.See(SeenPods::Worker());
  const auto identity = Find(Export(7));
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->role, security::Role::kExporter);
  EXPECT_EQ(identity->slot, 0U);
  EXPECT_EQ(identity->generation, 7U);
  seen_.See(Output(kOutputTrial));
  EXPECT_TRUE(Find(Export(7)).ok()) << "a trial takes nobody's place";
  EXPECT_TRUE(absl::IsNotFound(Find(Output(kOutputTrial)).status()));
  seen_.See(Export(8));
  EXPECT_TRUE(absl::IsPermissionDenied(Find(Export(7)).status()));
}

TEST_F(PodIdentitiesTest, WhoWasReplacedGetsNothing) {
  seen_.See(SeenPods::Worker(12));
  PodView neighbour = SeenPods::Worker(20);
  neighbour.pod.process.id.slot = 4;
  neighbour.pod.name = "digits-worker-4-20";
  seen_.See(neighbour);
  EXPECT_TRUE(Find(SeenPods::Worker(12)).ok());
  seen_.See(SeenPods::Worker(13));
  EXPECT_TRUE(absl::IsPermissionDenied(Find(SeenPods::Worker(12)).status()));
  EXPECT_TRUE(Find(SeenPods::Worker(13)).ok());
}

TEST_F(PodIdentitiesTest, WhatHasEndedGetsNothing) {
  PodView pod = SeenPods::Worker();
  pod.pod.state = ObservedPod::State::kEnded;
  seen_.See(pod);
  EXPECT_TRUE(absl::IsPermissionDenied(Find(pod).status()));
}

TEST_F(PodIdentitiesTest, WhatIsNotSeenYetIsToTryAgain) {
  EXPECT_TRUE(absl::IsUnavailable(Find(SeenPods::Worker()).status()));
  seen_.See(SeenPods::Worker());
  PodView another = SeenPods::Worker();
  another.pod.uid = "of-an-earlier-one";
  EXPECT_TRUE(absl::IsUnavailable(Find(another).status()));
  seen_.SeeJob("");
  EXPECT_TRUE(absl::IsUnavailable(Find(SeenPods::Worker()).status()));
}

TEST_F(PodIdentitiesTest, LabelsDoNotMakeAPodThatOfAnotherJob) {
  PodView elsewhere = SeenPods::Worker();
  elsewhere.ns = "team-b";
  seen_.See(elsewhere);
  EXPECT_FALSE(Find(elsewhere).ok()) << "there is no such job in its namespace";
  seen_.See(SeenPods::Worker());
  seen_.SeeJob("of-another-job");
  EXPECT_TRUE(absl::IsUnavailable(Find(SeenPods::Worker()).status()));
}

}  // namespace
}  // namespace adamant::kube
