#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/unit/operator/kube/job/lost_node_rig.h"

// Somebody deletes the claims of parameter servers.
namespace adamant::kube {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

using DeletedClaimTest = LostNodeRig;

TEST_F(DeletedClaimTest, AServerWhoseClaimIsDeletedBeginsAnewOnAnother) {
  DeleteAtOnce(kLost);
  Work();
  ASSERT_EQ(ClaimOf(kReplacement), "mnist-parameter-server-0-1");
  DeleteClaimOf(kReplacement);
  WorkFor(seconds(10));
  EXPECT_THAT(Names(kPods), Not(Contains(kReplacement)));
  EXPECT_EQ(ClaimOf("mnist-parameter-server-0-3"), "mnist-parameter-server-0-2");
  EXPECT_THAT(ServersClaims(),
              UnorderedElementsAre("mnist-parameter-server-0-2", "mnist-parameter-server-1-1"));
  EXPECT_THAT(Warnings(),
              Contains(HasSubstr("Lost: parameter-server-0 begins anew on another volume: its "
                                 "claim mnist-parameter-server-0-1 was deleted")));
  WorkFor(seconds(100));
  EXPECT_EQ(ClaimOf("mnist-parameter-server-0-3"), "mnist-parameter-server-0-2") << "once";
}

TEST_F(DeletedClaimTest, AClaimThatIsBeingDeletedIsAsGood) {
  ChangeClaimOf(kLost, {{"metadata", {{"finalizers", {"kubernetes.io/pvc-protection"}}}}});
  DeleteClaimOf(kLost);
  WorkFor(seconds(10));
  EXPECT_EQ(Names(kPods), kFirstPods) << "its pod runs";
  DeleteAtOnce(kLost);
  WorkFor(seconds(10));
  EXPECT_EQ(ClaimOf("mnist-parameter-server-0-3"), "mnist-parameter-server-0-2");
}

TEST_F(DeletedClaimTest, AFirstPodWhoseClaimIsDeletedGetsAnotherToo) {
  Json pod = client_.Get(kPods, {kJob.key.ns, kLost}).value();
  pod["spec"].erase("nodeName");
  pod = client_.Update(kPods, pod).value();
  pod["status"]["phase"] = "Pending";
  ASSERT_TRUE(client_.Update(kPods, pod, "status").ok());
  DeleteClaimOf(kLost);
  WorkFor(seconds(10));
  EXPECT_EQ(ClaimOf(kReplacement), "mnist-parameter-server-0-2");
}

TEST_F(DeletedClaimTest, AClaimThatIsDeletedBeforeThePodIsMadeAgainWhichIsTold) {
  DeleteClaimOf(kLost);
  DeleteAtOnce(kLost);
  Work();
  EXPECT_EQ(ClaimOf(kReplacement), "mnist-parameter-server-0-1");
  EXPECT_THAT(Warnings(),
              Contains(HasSubstr("ClaimDeleted: parameter-server-0 begins anew on an empty volume: "
                                 "its claim mnist-parameter-server-0-1 was deleted")));
}

TEST_F(DeletedClaimTest, AnApiThatDoesNotAnswerIsNotTakenForADeletedClaim) {
  DeleteAtOnce(kLost);
  Work();
  server_.SetFaults([&](const HttpRequest& request) {
    return request.method == "GET" &&
                   request.target.find("persistentvolumeclaims/") != std::string::npos
               ? MemoryApiServer::Fault::kRefuse
               : MemoryApiServer::Fault::kNone;
  });
  WorkFor(seconds(20));
  server_.SetFaults(nullptr);
  EXPECT_EQ(ClaimOf(kReplacement), "mnist-parameter-server-0-1");
}

}  // namespace
}  // namespace adamant::kube
