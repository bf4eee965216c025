#include "services/parameter_server/core/replication/primary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/services/parameter_server/core/replication/host_mock.h"
#include "tests/unit/services/parameter_server/core/replication/rig.h"

namespace adamant::parameter_server {
namespace {

using testing::_;
using testing::InSequence;
using testing::NiceMock;

// A replica with one more server beside it, which answers when a test says so.
class PrimaryTest : public testing::Test {
 protected:
  PrimaryTest() {
    configuration_ = {.version = 3,
                      .generation = 1,
                      .primary = kSelf,
                      .replicas = {kSelf, kReplica},
                      .created = true};
  }

  // What it holds was prepared by others.
  void Holds(Lsn committed, Lsn prepared) {
    local_.BeginCopy(1, committed, 0);
    local_.SetHasContent();
    for (Lsn lsn = committed + 1; lsn <= prepared; ++lsn) {
      local_.Keep(std::make_shared<const Entry>(Entry{.lsn = lsn, .origin = 2}));
    }
  }

  void Hear(decltype(PeerMessage::kind) kind) {
    primary_.OnMessage(kReplica, Rig::Message(configuration_.version, std::move(kind)), now_);
  }

  static constexpr ServerId kSelf{.slot = 0, .incarnation = 1};
  static constexpr ServerId kReplica{.slot = 1, .incarnation = 1};
  const Clock::TimePoint now_{std::chrono::hours(1)};
  NiceMock<HostMock> host_;
  Configuration configuration_;
  LocalCopy local_{kBucket, EntryLog::Logging::kNothing, host_};
  Proposer proposals_{kBucket, kSelf, host_, configuration_, local_.log()};
  Primary primary_{kBucket,
                   {.self = kSelf, .times = {}, .max_log_bytes = 1000},
                   host_,
                   configuration_,
                   local_,
                   proposals_};
};

TEST_F(PrimaryTest, WhoHasNoContentLoadsItBeforeItServes) {
  configuration_.replicas = {kSelf};
  EXPECT_CALL(host_, Load(kBucket, false));
  primary_.BeginConfiguration(now_);
  EXPECT_EQ(primary_.role(), ReplicaRole::kLoading);
  EXPECT_FALSE(primary_.CanRead(now_));
  EXPECT_CALL(host_, Serving(kBucket));
  primary_.OnLoaded(now_ + seconds(2));
  EXPECT_EQ(primary_.role(), ReplicaRole::kServing);
  EXPECT_TRUE(primary_.CanRead(now_));
  EXPECT_EQ(primary_.reconcile_seconds(), 2);
}

TEST_F(PrimaryTest, WhatWasTakenOverIsCommittedBeforeItServes) {
  Holds(1, 2);
  primary_.BeginConfiguration(now_);
  EXPECT_EQ(primary_.role(), ReplicaRole::kReconciling);
  EXPECT_FALSE(primary_.CanAppend());
  const InSequence in_order;
  EXPECT_CALL(host_, Commit(kBucket, _));
  EXPECT_CALL(host_, Serving(kBucket));
  Hear(BeaconAnswer{.sent = now_, .acked = 2});
  EXPECT_EQ(primary_.role(), ReplicaRole::kServing);
  EXPECT_TRUE(primary_.CanAppend());
}

TEST_F(PrimaryTest, AnEntryIsCommittedWhenTheOtherReplicaHasIt) {
  Holds(1, 1);
  primary_.BeginConfiguration(now_);
  Hear(BeaconAnswer{.sent = now_, .acked = 1});
  EXPECT_EQ(primary_.Append({.bytes = 1}, now_), 2u);
  EXPECT_EQ(local_.log().committed(), 1u);
  Hear(PrepareAck{.acked = 2});
  EXPECT_EQ(local_.log().committed(), 2u);
}

TEST_F(PrimaryTest, WhoHandsOverServesAgainUnderTheNextConfiguration) {
  Holds(1, 1);
  primary_.BeginConfiguration(now_);
  Hear(BeaconAnswer{.sent = now_, .acked = 1});
  configuration_.successor = kReplica;
  primary_.FollowHint(now_);
  EXPECT_EQ(primary_.role(), ReplicaRole::kDraining);
  EXPECT_FALSE(primary_.CanRead(now_));
  primary_.EndConfiguration();
  configuration_.version = 4;
  configuration_.replicas = {kSelf};
  configuration_.successor.reset();
  primary_.BeginConfiguration(now_);
  EXPECT_EQ(primary_.role(), ReplicaRole::kServing);
}

TEST_F(PrimaryTest, WhoIsNoPrimaryDoesNothing) {
  Holds(1, 2);
  EXPECT_CALL(host_, Send).Times(0);
  EXPECT_CALL(host_, Propose).Times(0);
  primary_.OnDead({kReplica}, now_);
  primary_.OnConnected(kReplica, now_);
  primary_.RequestFlush(now_);
  primary_.Tick(now_);
  Hear(PrepareAck{.acked = 2});
  EXPECT_FALSE(primary_.IsPrimary());
  EXPECT_EQ(local_.log().committed(), 1u);
  EXPECT_EQ(primary_.NextTick(), Clock::TimePoint::max());
  EXPECT_TRUE(primary_.peers().IsDead(kReplica)) << "a secondary asks for that";
}

TEST_F(PrimaryTest, WhoStepsDownCommitsNothingMore) {
  Holds(1, 2);
  primary_.BeginConfiguration(now_);
  primary_.EndConfiguration();
  primary_.StepDown();
  primary_.TryCommit(now_);
  EXPECT_FALSE(primary_.IsPrimary());
  EXPECT_EQ(local_.log().committed(), 1u);
}

}  // namespace
}  // namespace adamant::parameter_server
