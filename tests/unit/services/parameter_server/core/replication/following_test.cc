#include "services/parameter_server/core/replication/following.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "tests/unit/services/parameter_server/core/replication/host_mock.h"
#include "tests/unit/services/parameter_server/core/replication/rig.h"

namespace adamant::parameter_server {
namespace {

using testing::_;
using testing::NiceMock;

class FollowingTest : public testing::Test {
 protected:
  FollowingTest() {
    configuration_ = {
        .version = 3, .primary = kPrimary, .replicas = {kPrimary, kSelf}, .created = true};
  }

  static constexpr ServerId kPrimary{.slot = 0, .incarnation = 1};
  static constexpr ServerId kSelf{.slot = 1, .incarnation = 1};
  static constexpr ServerId kOther{.slot = 2, .incarnation = 1};
  const Clock::TimePoint now_{std::chrono::hours(1)};
  NiceMock<HostMock> host_;
  Configuration configuration_;
  LocalCopy local_{kBucket, EntryLog::Logging::kNothing, host_};
  Following following_{
      kBucket, {.self = kSelf, .grace = seconds(4)}, host_, configuration_, local_};
};

TEST_F(FollowingTest, WhoFollowsNobodyAnswersNobody) {
  EXPECT_CALL(host_, Send).Times(0);
  EXPECT_TRUE(following_.OnBeacon(kPrimary, {.primary = kPrimary, .base = 9}, now_));
  EXPECT_TRUE(following_.OnPrepare(kPrimary, {.base = 9, .entry = nullptr}));
  following_.OnConnected(kPrimary);
}

TEST_F(FollowingTest, ASecondaryAnswersItsPrimaryAloneAndPromisesIt) {
  following_.BecomeSecondary(now_);
  EXPECT_EQ(following_.role(), ReplicaRole::kSecondary);
  EXPECT_CALL(host_, Send(kPrimary, _)).Times(2);
  EXPECT_TRUE(following_.OnBeacon(kOther, {}, now_ + seconds(1)));
  EXPECT_TRUE(following_.OnBeacon(kPrimary, {}, now_ + seconds(2)));
  EXPECT_EQ(following_.promised_until(), now_ + seconds(6));
  following_.OnConnected(kPrimary);
  following_.OnConnected(kOther);
}

TEST_F(FollowingTest, WhoHasProposedToTakeOverPromisesNobodyAndTakesEntries) {
  following_.BecomeSecondary(now_);
  following_.StopPromising();
  EXPECT_CALL(host_, Send(kPrimary, _));
  EXPECT_TRUE(following_.OnBeacon(kPrimary, {}, now_ + seconds(1)));
  EXPECT_EQ(following_.promised_until(), now_ + seconds(4));
  const auto entry = std::make_shared<const Entry>(Entry{.lsn = 1});
  EXPECT_TRUE(following_.OnPrepare(kPrimary, {.entry = entry}));
  EXPECT_EQ(local_.log().prepared(), 1u);
}

TEST_F(FollowingTest, WhoLacksWhatThePrimaryTakesForGrantedIsNoReplica) {
  following_.BecomeSecondary(now_);
  EXPECT_CALL(host_, Send).Times(0);
  EXPECT_FALSE(following_.OnBeacon(kPrimary, {.primary = kPrimary, .base = 1}, now_));
  EXPECT_FALSE(following_.OnPrepare(kPrimary, {.base = 1, .entry = nullptr}));
}

TEST_F(FollowingTest, ACopyIsLearntFromThePrimaryByWhoIsNoReplicaAndOnce) {
  EXPECT_FALSE(following_.Learns(kPrimary, {.copy = 1})) << "it is a replica";
  configuration_.replicas = {kPrimary};
  EXPECT_FALSE(following_.Learns(kOther, {.copy = 1}));
  ASSERT_TRUE(following_.Learns(kPrimary, {.copy = 1}));
  EXPECT_CALL(host_, Learn(kBucket, _));
  following_.BeginCopy({.copy = 1, .base = 5});
  EXPECT_EQ(following_.role(), ReplicaRole::kLearner);
  EXPECT_EQ(local_.log().committed(), 5u);
  EXPECT_FALSE(following_.Learns(kPrimary, {.copy = 1}));
  EXPECT_TRUE(following_.Learns(kPrimary, {.copy = 2}));
}

TEST_F(FollowingTest, ALearnerCommitsWhenItsPresentCopyIsInstalled) {
  configuration_.replicas = {kPrimary};
  following_.BeginCopy({.copy = 2, .base = 5});
  const auto entry = std::make_shared<const Entry>(Entry{.lsn = 6});
  EXPECT_TRUE(following_.OnPrepare(kPrimary, {.base = 5, .committed = 6, .entry = entry}));
  following_.OnInstalled(1);
  EXPECT_EQ(local_.log().committed(), 5u);
  EXPECT_CALL(host_, Commit(kBucket, _));
  following_.OnInstalled(2);
  EXPECT_EQ(local_.log().committed(), 6u);
}

}  // namespace
}  // namespace adamant::parameter_server
