#include "operator/kube/pods/member_addresses.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/operator/kube/job/job_reconciler_rig.h"
#include "tests/unit/operator/kube/pods/member_pods.h"

namespace adamant::kube {
namespace {

TEST(MemberAddressesTest, OnlyThePodOfTheProcessMayJoinAsIt) {
  MemberAddresses addresses;
  addresses.Update({PodOfMember(1, {"10.0.0.8"}), PodOfMember(2, {"10.0.0.9", "192.168.1.1"})});
  EXPECT_EQ(addresses.OnJoin(1, JoinFrom("10.0.0.9")), "");
  EXPECT_EQ(addresses.OnJoin(2, JoinFrom("192.168.1.1")), "") << "its node's";
  EXPECT_EQ(addresses.OnJoin(3, JoinFrom("10.0.0.8")),
            "10.0.0.8 is not the address of the pod of worker-0");
  EXPECT_EQ(addresses.OnJoin(4, JoinFrom("10.0.0.8", 1)), "");
}

TEST(MemberAddressesTest, WhatSaysNothingOfTheAddressIsLetIn) {
  MemberAddresses addresses;
  addresses.Update({PodOfMember(2, {"10.0.0.9"})});
  EXPECT_EQ(addresses.OnJoin(1, JoinFrom("")), "");
  EXPECT_EQ(addresses.OnJoin(2, JoinFrom("127.0.0.6")), "") << "of a mesh's proxy";
  EXPECT_EQ(addresses.OnJoin(3, JoinFrom("10.0.0.8", 7)), "") << "its pod is not seen";
}

TEST(MemberAddressesTest, AnAddressThatIsToldLaterIsComparedThen) {
  MemberAddresses addresses;
  addresses.Update({PodOfMember(2, {})});
  EXPECT_EQ(addresses.OnJoin(5, JoinFrom("10.0.0.8")), "");
  EXPECT_TRUE(addresses.Update({PodOfMember(2, {})}).empty());
  const auto strangers = addresses.Update({PodOfMember(2, {"10.0.0.9"})});
  ASSERT_EQ(strangers.size(), 1u);
  EXPECT_EQ(strangers[0].connection, 5u);
  EXPECT_TRUE(addresses.Update({PodOfMember(2, {"10.0.0.9"})}).empty()) << "once";
}

controller::Join JoinIn(const std::string& pod_uid, const std::string& peer = "") {
  controller::Join join = JoinFrom(peer);
  join.pod_uid = pod_uid;
  return join;
}

TEST(MemberAddressesTest, WhoSaysThatItRunsInAnotherPodIsTurnedAway) {
  MemberAddresses addresses;
  addresses.Update({PodOfMember(1, {"10.0.0.8"}), PodOfMember(2, {"10.0.0.9"})});
  EXPECT_EQ(addresses.OnJoin(1, JoinIn("uid-of-2", "10.0.0.9")), "");
  EXPECT_EQ(addresses.OnJoin(2, JoinIn("uid-of-1", "10.0.0.9")),
            "the pod of UID uid-of-1 is not the pod of worker-0");
  EXPECT_NE(addresses.OnJoin(3, JoinIn("uid-of-1", "127.0.0.6")), "") << "behind a proxy, too";
  EXPECT_NE(addresses.OnJoin(4, JoinIn("uid-of-2", "10.0.0.8")), "") << "it knows the UID alone";
  EXPECT_EQ(addresses.OnJoin(5, JoinIn("", "10.0.0.9")), "") << "of an older image";
}

TEST(MemberAddressesTest, ThePodOfAUidIsComparedWhenItIsSeen) {
  MemberAddresses addresses;
  EXPECT_EQ(addresses.OnJoin(5, JoinIn("uid-of-another")), "");
  const auto strangers = addresses.Update({PodOfMember(2, {"10.0.0.9"})});
  ASSERT_EQ(strangers.size(), 1u);
  EXPECT_EQ(strangers[0].connection, 5u);
}

class StrangerTest : public JobReconcilerRig {};

TEST_F(StrangerTest, AProcessThatIsNotInThePodOfItsSlotIsTurnedAway) {
  Lead(Json::object());
  Work();
  const std::string name = PodName(kJob.key.name, {.id = kMember, .generation = 1});
  Json pod = client_.Get(kPods, {kJob.key.ns, name}).value();
  pod["status"] = {{"phase", "Running"},
                   {"podIP", "10.0.0.9"},
                   {"podIPs", Json::array({{{"ip", "10.0.0.9"}}, {{"ip", "fd00::9"}}})},
                   {"hostIP", "192.168.1.1"}};
  ASSERT_TRUE(client_.Update(kPods, pod, "status").ok());
  controller::Join join = JoinFrom("10.0.0.8", 1);
  join.uid = "stranger";
  Work();
  control_.Tell(7, join);
  Work();
  const auto refused = control_.Sent<controller::Refused>();
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].second.reason, "10.0.0.8 is not the address of the pod of worker-0");
  EXPECT_EQ(control_.closed(), std::vector<controller::ConnectionId>{7});
  join.uid = "process";
  join.peer = "fd00::9";
  control_.Tell(8, join);
  Work();
  ASSERT_EQ(control_.Sent<controller::Welcome>().size(), 1u);
  EXPECT_EQ(control_.Sent<controller::Welcome>()[0].first, 8u);
}

}  // namespace
}  // namespace adamant::kube
