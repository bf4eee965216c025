#include "operator/kube/job/address_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/operator/kube/job/job_fixture.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"
#include "tests/unit/operator/kube/pods/member_pods.h"

namespace adamant::kube {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Pair;

class AddressCheckTest : public testing::Test {
 protected:
  bool TurnsAway(controller::ConnectionId connection, const controller::MemberMessage& message) {
    return check_.TurnsAway(controller::Received{connection, message});
  }

  void ExpectRefused(controller::ConnectionId connection) {
    const std::string why = "10.0.0.8 is not the address of the pod of worker-0";
    EXPECT_THAT(control_.Sent<controller::Refused>(),
                ElementsAre(Pair(connection, Field(&controller::Refused::reason, why))));
    EXPECT_THAT(control_.closed(), ElementsAre(connection));
  }

  void ExpectNobodyRefused() {
    EXPECT_THAT(control_.Sent<controller::Refused>(), IsEmpty());
    EXPECT_THAT(control_.closed(), IsEmpty());
  }

  ScriptedControl control_;
  AddressCheck check_{control_, kJob};
};

TEST_F(AddressCheckTest, WhoJoinsFromItsPodIsLetIn) {
  check_.Update({PodOfMember(2, {"10.0.0.9"})});
  EXPECT_FALSE(TurnsAway(7, JoinFrom("10.0.0.9")));
  ExpectNobodyRefused();
}

TEST_F(AddressCheckTest, AStrangerIsToldWhyItIsTurnedAway) {
  check_.Update({PodOfMember(2, {"10.0.0.9"})});
  EXPECT_TRUE(TurnsAway(7, JoinFrom("10.0.0.8")));
  ExpectRefused(7);
}

TEST_F(AddressCheckTest, AStrangerIsTurnedAwayLaterWhereThePodHasItsAddressLater) {
  check_.Update({PodOfMember(2, {})});
  EXPECT_FALSE(TurnsAway(7, JoinFrom("10.0.0.8")));
  ExpectNobodyRefused();
  check_.Update({PodOfMember(2, {"10.0.0.9"})});
  ExpectRefused(7);
}

TEST_F(AddressCheckTest, OtherEventsPass) {
  check_.Update({PodOfMember(2, {"10.0.0.9"})});
  EXPECT_FALSE(TurnsAway(7, controller::Heartbeat{}));
  EXPECT_FALSE(check_.TurnsAway(controller::Disconnected{7}));
  ExpectNobodyRefused();
}

}  // namespace
}  // namespace adamant::kube
