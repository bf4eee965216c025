#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/unit/services/parameter_server/core/serving/server_rig.h"

// What disks tell of their buckets, and what a process can still do whose volume has been detached
// by force and attached elsewhere, where the next process of its slot has opened it.
namespace adamant::parameter_server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WorkerId kPusher{.slot = 0, .incarnation = 3};

class VolumesTest : public ::testing::Test {
 protected:
  static ParameterServerOptions Options(PersistenceMode mode) {
    return {.job_uid = 7,
            .writers = 4,
            .parameters = {{.name = "w", .layer = "l", .shape = {8}}},
            .optimisers = {{.rate = 0.1}},
            .min_in_sync = 1,
            .mode = mode};
  }

  void Begin(PersistenceMode mode, std::uint32_t servers) {
    for (std::uint32_t slot = 0; slot < servers; ++slot) {
      rig_.Start(slot, Options(mode));
    }
    rig_.AssignAll(0);
    for (std::uint32_t slot = 1; slot < servers; ++slot) {
      rig_.AddEverywhere(slot);
    }
    ASSERT_EQ(rig_.map[0].replicas.size(), servers);
  }

  std::optional<PushOutcome> Push(std::uint32_t slot, Sequence sequence) {
    const auto values = std::make_shared<const std::vector<float>>(8, 1.0F);
    const auto acks = rig_.Push(
        slot,
        {.writer = kPusher,
         .updates = {{.sequence = sequence, .kind = UpdateKind::kGradient, .values = *values}},
         .owner = values});
    return acks.has_value() ? std::optional(acks->at(0).outcome) : std::nullopt;
  }

  bool CanRead(std::uint32_t slot) {
    return rig_.server(slot).Fetch(nullptr, std::vector<ShardId>{0}, 0)->at(0).outcome ==
           FetchOutcome::kFound;
  }

  ServerRig rig_{3};
};

TEST_F(VolumesTest, WithOtherReplicasItAcknowledgesNothingMoreAndIsReadForALease) {
  Begin(PersistenceMode::kDelayed, 3);
  EXPECT_EQ(Push(0, 1), PushOutcome::kApplied);
  rig_.away.insert(0);
  rig_.dead.push_back(rig_.server_id(0));  // what its slot's next process proves, though it lives
  rig_.Publish();
  const std::uint32_t successor = rig_.map[0].primary.slot;
  ASSERT_NE(successor, 0u);
  EXPECT_TRUE(CanRead(0)) << "promises to it are void, and it does not know";
  EXPECT_EQ(Push(0, 2), std::nullopt);
  EXPECT_EQ(Push(successor, 2), PushOutcome::kApplied);
  rig_.Advance(ReplicationTimes{}.lease);
  EXPECT_FALSE(CanRead(0));
  EXPECT_EQ(Push(0, 3), std::nullopt);
  EXPECT_EQ(Push(successor, 2), PushOutcome::kDuplicate);
}

TEST_F(VolumesTest, AloneItAcknowledgesNothingThatItCannotLog) {
  Begin(PersistenceMode::kWalSync, 1);
  EXPECT_EQ(Push(0, 1), PushOutcome::kApplied);
  rig_.store(0).FailNextSync();
  EXPECT_EQ(Push(0, 2), std::nullopt);
  EXPECT_FALSE(rig_.storage_error(0).ok()) << "the process ends";
}

TEST_F(VolumesTest, AloneInDelayedItEndsWithItsNextFlush) {
  Begin(PersistenceMode::kDelayed, 1);
  rig_.store(0).FailNextSync();
  EXPECT_EQ(Push(0, 1), PushOutcome::kApplied) << "from memory: lost, as in a crash now";
  rig_.Advance(Options(PersistenceMode::kDelayed).flush.interval);
  EXPECT_LE(rig_.server(0).flusher().DueAt(), rig_.clock.Now());
  EXPECT_FALSE(rig_.Flush(0).ok()) << "the process ends";
}

// Else it would rank before a disk with more, once what it only logged is lost with the power.
TEST_F(VolumesTest, ACopyAndAFlushEndWithTheOriginOfTheirLastEntry) {
  Begin(PersistenceMode::kWal, 1);
  EXPECT_EQ(Push(0, 1), PushOutcome::kApplied);
  const ConfigurationVersion origin = rig_.map[0].version;
  for (const std::uint32_t slot : {1u, 2u}) {
    rig_.Start(slot, Options(PersistenceMode::kWal));
    rig_.AddEverywhere(slot);
  }
  ASSERT_EQ(rig_.map[0].replicas.size(), 3u);
  EXPECT_GT(rig_.map[0].version, origin + 1) << "the second is copied in a later one";
  rig_.Advance(milliseconds(500));
  ASSERT_TRUE(rig_.Flush(0).ok());
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    rig_.Kill(slot);
    rig_.Start(slot, Options(PersistenceMode::kWal));
    const StoredBucket& end = rig_.stored(slot).buckets.at(0);
    EXPECT_EQ(end.log_version, origin) << slot;
    EXPECT_EQ(end.log_lsn, 1u) << slot;
  }
}

// A copy is synced, and has what other replicas have only logged.
TEST_F(VolumesTest, AFreshCopySaysUpToWhereItHasTheLog) {
  Begin(PersistenceMode::kWal, 2);
  EXPECT_EQ(Push(0, 1), PushOutcome::kApplied);
  rig_.Advance(milliseconds(500));
  ASSERT_TRUE(rig_.Flush(0).ok());
  EXPECT_EQ(Push(0, 2), PushOutcome::kApplied);
  rig_.Start(2, Options(PersistenceMode::kWal));
  rig_.AddEverywhere(2);
  ASSERT_EQ(rig_.map[0].replicas.size(), 3u);
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    rig_.Kill(slot);
    rig_.store(slot).LosePower();
  }
  const auto log_end = [&](std::uint32_t slot) {
    rig_.Start(slot, Options(PersistenceMode::kWal));
    const StoredBucket& stored = rig_.stored(slot).buckets.at(0);
    EXPECT_TRUE(stored.complete) << stored.detail;
    return std::pair(stored.log_version, stored.log_lsn);
  };
  EXPECT_EQ(log_end(0).second, 1u);
  EXPECT_EQ(log_end(2).second, 2u);
  EXPECT_GT(log_end(2), log_end(0));
}

}  // namespace
}  // namespace adamant::parameter_server
