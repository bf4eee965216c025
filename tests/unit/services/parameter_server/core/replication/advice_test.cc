#include "services/parameter_server/core/replication/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/services/parameter_server/core/replication/host_mock.h"

namespace adamant::parameter_server {
namespace {

using testing::NiceMock;

constexpr Holder kSelf{.slot = 0, .incarnation = 1};
constexpr Holder kMember{.slot = 1, .incarnation = 1};
constexpr Holder kOther{.slot = 2, .incarnation = 1};

class AdviceTest : public testing::Test {
 protected:
  AdviceTest() {
    configuration_.primary = kSelf;
    configuration_.members = {kSelf, kMember};
    peers_.Add(kMember, Peer::Kind::kMember, 0, now_);
  }

  const Clock::TimePoint now_{std::chrono::hours(1)};
  NiceMock<HostMock> host_;
  Configuration configuration_;
  EntryLog log_{EntryLog::Logging::kNothing};
  PeerTable peers_{ReplicationTimes{}};
  Proposals proposals_{7, kSelf, host_, configuration_, log_};
  const Advice advice_{kSelf, configuration_, peers_, proposals_};
};

TEST_F(AdviceTest, OnlyALivingMemberIsAnHeir) {
  EXPECT_EQ(advice_.Heir(), std::nullopt);
  for (const Holder& holder : {kSelf, kOther}) {
    configuration_.heir = holder;
    EXPECT_EQ(advice_.Heir(), std::nullopt);
  }
  configuration_.heir = kMember;
  EXPECT_EQ(advice_.Heir(), kMember);
  peers_.SetDead({kMember});
  EXPECT_EQ(advice_.Heir(), std::nullopt);
}

TEST_F(AdviceTest, AMemberIsDroppedOnceAtATime) {
  configuration_.leaver = kMember;
  EXPECT_EQ(advice_.Leaver(), kMember);
  proposals_.Propose(Proposal::Kind::kDrop, kMember, false, now_);
  EXPECT_EQ(advice_.Leaver(), std::nullopt);
}

TEST_F(AdviceTest, ALearnerWaitsUntilItsCopyBegins) {
  configuration_.learner = kOther;
  EXPECT_EQ(advice_.Learner(), kOther);
  EXPECT_FALSE(advice_.GivesUpCopy());
  peers_.Add(kOther, Peer::Kind::kCopying, 0, now_);
  EXPECT_EQ(advice_.Learner(), std::nullopt);
  EXPECT_FALSE(advice_.GivesUpCopy());
  configuration_.learner.reset();
  EXPECT_TRUE(advice_.GivesUpCopy());
}

TEST_F(AdviceTest, WhoIsProposedMayBeWantedNoMore) {
  configuration_.learner = kOther;
  proposals_.Propose(Proposal::Kind::kAdd, kOther, false, now_);
  EXPECT_EQ(advice_.NotToAdd(), std::nullopt);
  configuration_.learner.reset();
  EXPECT_EQ(advice_.NotToAdd(), kOther);
}

}  // namespace
}  // namespace adamant::parameter_server
