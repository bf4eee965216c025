#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <variant>
#include <vector>

#include "tests/unit/services/parameter_server/core/serving/server_rig.h"

// Several servers that hold the same buckets.
namespace adamant::parameter_server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Each;

constexpr WorkerId kWriter{.slot = 0, .incarnation = 3};

class ReplicatedTest : public ::testing::Test {
 protected:
  static ParameterServerOptions Options(PersistenceMode mode = PersistenceMode::kDelayed) {
    ParameterServerOptions options{
        .job_uid = 7, .writers = 4, .seed = 5, .buckets = 3, .min_in_sync = 2, .mode = mode};
    for (const char* name : {"a", "b", "c", "d"}) {
      options.parameters.push_back(
          {.name = name, .layer = "l", .shape = {1000}, .initialisation = Initialisation::kHe});
      options.optimisers.push_back({.kind = OptimiserKind::kMomentum, .rate = 0.1});
    }
    return options;
  }

  void StartThree(PersistenceMode mode = PersistenceMode::kDelayed) {
    mode_ = mode;
    for (const std::uint32_t slot : {0u, 1u, 2u}) {
      rig_.Start(slot, Options(mode));
    }
    rig_.AssignAll(0);
    rig_.AddEverywhere(1);
    rig_.AddEverywhere(2);
    for (const Configuration& line : rig_.map) {
      ASSERT_EQ(line.replicas.size(), 3u);
    }
  }

  /// One push to all four shards.
  struct Push MakePush(Sequence sequence) {
    auto values = std::make_shared<std::vector<float>>(1000);
    for (std::size_t i = 0; i < values->size(); ++i) {
      (*values)[i] = static_cast<float>(sequence) + static_cast<float>(i) / 777;
    }
    struct Push push {
      .writer = kWriter, .owner = values
    };
    for (const ShardId shard : {0u, 1u, 2u, 3u}) {
      push.updates.push_back(
          {.shard = shard, .sequence = sequence, .kind = UpdateKind::kGradient, .values = *values});
    }
    return push;
  }

  void ExpectApplied(std::uint32_t slot, Sequence sequence) {
    const auto acks = rig_.Push(slot, MakePush(sequence));
    ASSERT_TRUE(acks.has_value()) << "push " << sequence;
    for (const ShardAck& ack : *acks) {
      EXPECT_EQ(ack.outcome, PushOutcome::kApplied) << "push " << sequence;
    }
  }

  std::vector<std::uint32_t> Bits(std::uint32_t slot) {
    const auto values = rig_.server(slot).Fetch(&kWriter, std::vector<ShardId>{0, 1, 2, 3}, 0);
    EXPECT_TRUE(values.ok());
    std::vector<std::uint32_t> bits;
    for (const ShardValue& value : *values) {
      EXPECT_EQ(value.outcome, FetchOutcome::kFound);
      for (const float v : value.values) {
        bits.push_back(std::bit_cast<std::uint32_t>(v));
      }
    }
    return bits;
  }

  std::uint64_t Included(std::uint32_t slot) {
    return rig_.server(slot).Fetch(&kWriter, std::vector<ShardId>{0}, 0)->at(0).included_sequence;
  }

  PersistenceMode mode_ = PersistenceMode::kDelayed;
  ServerRig rig_{4};
};

TEST_F(ReplicatedTest, ASuccessorHasEveryAcknowledgedUpdateBitForBit) {
  StartThree();
  for (Sequence sequence = 1; sequence <= 5; ++sequence) {
    ExpectApplied(0, sequence);
  }
  const auto before = Bits(0);
  rig_.Kill(0);
  const std::uint32_t successor = rig_.map[0].primary.slot;
  ASSERT_NE(successor, 0u);
  for (BucketId bucket = 0; bucket < 3; ++bucket) {
    EXPECT_EQ(rig_.map[bucket].primary.slot, successor) << "one of them was asked first";
    EXPECT_EQ(rig_.map[bucket].replicas.size(), 2u);
  }
  EXPECT_EQ(Bits(successor), before);
  EXPECT_EQ(rig_.Push(successor, MakePush(5))->at(0).outcome, PushOutcome::kDuplicate);
  ExpectApplied(successor, 6);
}

// It may have been acknowledged long ago, and be on no other disk soon.
TEST_F(ReplicatedTest, WhatASuccessorLearnsToBeCommittedIsDueAtOnce) {
  StartThree();
  ExpectApplied(0, 1);
  rig_.Kill(0);
  const ParameterServer& successor = rig_.server(rig_.map[0].primary.slot);
  EXPECT_GT(successor.flusher().dirty().bytes(), 0u);
  EXPECT_LE(successor.flusher().DueAt(), rig_.clock.Now());
}

TEST_F(ReplicatedTest, NothingIsAcknowledgedBeforeAllReplicasHaveIt) {
  StartThree();
  rig_.cut.insert({0, 2});
  EXPECT_FALSE(rig_.Push(0, MakePush(1)).has_value());
  rig_.Advance(milliseconds(3500));  // the silent replica is dropped
  EXPECT_EQ(rig_.map[0].replicas.size(), 2u);
  EXPECT_EQ(Included(0), 1u);
  EXPECT_EQ(rig_.Push(0, MakePush(1))->at(0).outcome, PushOutcome::kDuplicate);
}

TEST_F(ReplicatedTest, APrimaryThatIsCutOffReadsAndWritesNoMore) {
  StartThree();
  ExpectApplied(0, 1);
  for (const std::uint32_t other : {1u, 2u}) {
    rig_.cut.insert({0, other});
    rig_.cut.insert({other, 0});
  }
  rig_.Advance(seconds(1));
  EXPECT_FALSE(rig_.Push(0, MakePush(2)).has_value());
  const std::vector<Configuration> map = rig_.map;
  rig_.Advance(seconds(2));
  EXPECT_NE(rig_.server(0).Fetch(nullptr, std::vector<ShardId>{0}, 0)->at(0).outcome,
            FetchOutcome::kFound)
      << "the lease has run out";
}

TEST_F(ReplicatedTest, WaitersOfADemotedPrimaryAreSentElsewhere) {
  StartThree();
  rig_.cut = {{0, 1}, {0, 2}, {1, 0}, {2, 0}};
  auto acks = std::make_shared<std::optional<std::vector<ShardAck>>>();
  rig_.server(0).Submit(MakePush(1),
                        [acks](std::vector<ShardAck> settled) { *acks = std::move(settled); });
  rig_.Run();
  EXPECT_FALSE(acks->has_value());
  for (Configuration& line : rig_.map) {
    ++line.version;
    line.replicas = {rig_.server_id(1), rig_.server_id(2)};
    line.primary = rig_.server_id(1);
  }
  rig_.Publish();
  ASSERT_TRUE(acks->has_value());
  EXPECT_EQ((*acks)->at(0).outcome, PushOutcome::kNotPrimary);
  ExpectApplied(1, 1);
}

TEST_F(ReplicatedTest, ALearnerGetsTheContentAndWhatIsPushedMeanwhile) {
  StartThree();
  for (Sequence sequence = 1; sequence <= 3; ++sequence) {
    ExpectApplied(0, sequence);
  }
  ASSERT_TRUE(rig_.Put(0, "ledger/0", 0, "first").has_value());
  rig_.Kill(2);
  EXPECT_EQ(rig_.map[0].replicas.size(), 2u);
  rig_.Start(3, Options());
  for (Configuration& line : rig_.map) {
    line.learner = rig_.server_id(3);
  }
  rig_.server(0).SetConfigurations(rig_.map, rig_.dead);  // the copy begins
  ExpectApplied(0, 4);
  ASSERT_EQ(rig_.map[0].replicas.size(), 3u);
  ExpectApplied(0, 5);
  const auto before = Bits(0);
  rig_.Kill(1);
  rig_.Kill(0);
  EXPECT_EQ(rig_.map[0].primary, rig_.server_id(3));
  EXPECT_EQ(Bits(3), before);
  EXPECT_EQ(rig_.server(3).records().Get("ledger/0").record.value, "first");
  EXPECT_EQ(rig_.Push(3, MakePush(6))->at(0).outcome, PushOutcome::kNotReady)
      << "fewer than minInSync";
}

TEST_F(ReplicatedTest, ALearnerWhoseAnswersWereLostIsCopiedToAnewWhenItsWayIsOpen) {
  StartThree();
  ExpectApplied(0, 1);
  rig_.Start(3, Options());
  rig_.cut.insert({3, 0});
  rig_.AddEverywhere(3);
  ASSERT_EQ(rig_.map[0].replicas.size(), 3u);
  rig_.cut.clear();
  rig_.server(3).OnPeerConnected(rig_.server_id(0));
  rig_.Run();
  for (const Configuration& line : rig_.map) {
    EXPECT_EQ(line.replicas.size(), 4u) << "without waiting for a lease to end";
  }
  ExpectApplied(0, 2);
}

TEST_F(ReplicatedTest, ARestartedProcessIsAReplicaOfNothing) {
  StartThree();
  ExpectApplied(0, 1);
  rig_.Kill(1, false);
  rig_.Start(1, Options());
  EXPECT_FALSE(rig_.Push(0, MakePush(2)).has_value()) << "its old incarnation is still a replica";
  rig_.Advance(seconds(4));
  EXPECT_EQ(rig_.map[0].replicas.size(), 2u);
  ExpectApplied(0, 3);
}

TEST_F(ReplicatedTest, ATransferNeedsNoWaiting) {
  StartThree();
  ExpectApplied(0, 1);
  for (Configuration& line : rig_.map) {
    line.successor = rig_.server_id(2);
  }
  rig_.Publish();
  for (const Configuration& line : rig_.map) {
    EXPECT_EQ(line.primary, rig_.server_id(2));
    EXPECT_EQ(line.replicas.size(), 3u) << "the old primary stays";
  }
  EXPECT_EQ(rig_.Push(0, MakePush(2))->at(0).outcome, PushOutcome::kNotPrimary);
  ExpectApplied(2, 2);
}

TEST_F(ReplicatedTest, RecordsAreReplicatedAndChangeByCompareAndSwap) {
  StartThree();
  auto stored = rig_.Put(0, "ledger/0", 0, "a");
  ASSERT_TRUE(stored.has_value());
  EXPECT_TRUE(stored->stored);
  EXPECT_EQ(stored->record.version, 1u);
  stored = rig_.Put(0, "ledger/0", 0, "b");
  EXPECT_FALSE(stored->stored);
  EXPECT_EQ(stored->record.version, 1u);
  EXPECT_FALSE(rig_.server(0).records().Put("", 0, "a", [](const RecordAnswer&) { FAIL(); }).ok());
  rig_.Kill(0);
  const std::uint32_t successor = rig_.map[0].primary.slot;
  EXPECT_EQ(rig_.server(successor).records().Get("ledger/0").record.value, "a");
  EXPECT_TRUE(rig_.Put(successor, "ledger/0", 1, "c")->stored);
}

TEST_F(ReplicatedTest, WhenAllAreLostAFlushIsWhatComesBack) {
  StartThree();
  ExpectApplied(0, 1);
  ExpectApplied(0, 2);
  ASSERT_TRUE(rig_.Flush(0).ok());
  ExpectApplied(0, 3);
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    rig_.Kill(slot);
  }
  rig_.Start(0, Options());
  for (const StoredBucket& stored : rig_.stored(0).buckets) {
    EXPECT_TRUE(stored.complete) << stored.detail;
  }
  rig_.RestoreAll(0);
  EXPECT_EQ(Included(0), 2u);
  rig_.Start(1, Options());
  rig_.AddEverywhere(1);
  EXPECT_EQ(rig_.Push(0, MakePush(4))->at(0).expected, 3u);
  ExpectApplied(0, 3);
}

class LoggedTest : public ReplicatedTest, public ::testing::WithParamInterface<PersistenceMode> {};

TEST_P(LoggedTest, NothingAcknowledgedIsLostWhenAllAreKilled) {
  StartThree(GetParam());
  for (Sequence sequence = 1; sequence <= 3; ++sequence) {
    ExpectApplied(0, sequence);
  }
  ASSERT_TRUE(rig_.Flush(1).ok());
  ExpectApplied(0, 4);
  ASSERT_TRUE(rig_.Put(0, "ledger/0", 0, "a").has_value());
  const auto before = Bits(0);
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    if (GetParam() == PersistenceMode::kWalSync) {
      rig_.store(slot).LosePower();
    }
    rig_.Kill(slot);
  }
  rig_.Start(1, Options(GetParam()));
  rig_.RestoreAll(1);
  EXPECT_EQ(Bits(1), before);
  EXPECT_EQ(Included(1), 4u);
  EXPECT_EQ(rig_.server(1).records().Get("ledger/0").record.value, "a");
  for (const StoredBucket& stored : rig_.stored(1).buckets) {
    EXPECT_TRUE(stored.complete);
  }
}

TEST_P(LoggedTest, AReplicaWhoseDiskIsFullIsDropped) {
  StartThree(GetParam());
  ExpectApplied(0, 1);
  rig_.store(2).SetFull(true);
  EXPECT_FALSE(rig_.Push(0, MakePush(2)).has_value());
  rig_.Advance(seconds(8));
  EXPECT_EQ(rig_.map[0].replicas.size(), 2u);
  EXPECT_EQ(rig_.Push(0, MakePush(2))->at(0).outcome, PushOutcome::kDuplicate);
}

// Nor is it in the copy, which was sent before.
TEST_P(LoggedTest, WhatALearnerAcceptsWhileItsCopyComesStaysInItsLog) {
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    rig_.Start(slot, Options(GetParam()));
  }
  rig_.AssignAll(0);
  rig_.AddEverywhere(1);
  ExpectApplied(0, 1);
  rig_.held = [](const PeerMessage& message) {
    return std::holds_alternative<CopyPart>(message.kind);
  };
  rig_.AddEverywhere(2);
  ExpectApplied(0, 2);
  ASSERT_TRUE(rig_.Put(0, "ledger/0", 0, "a").has_value());
  rig_.Release();
  for (const Configuration& line : rig_.map) {
    ASSERT_EQ(line.replicas.size(), 3u);
  }
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    rig_.Kill(slot);
  }
  rig_.Start(2, Options(GetParam()));
  rig_.RestoreAll(2);
  EXPECT_EQ(Included(2), 2u);
  EXPECT_EQ(rig_.server(2).records().Get("ledger/0").record.value, "a");
}

// A beacon tells of a commit; what it commits is applied by another thread, later.
TEST_P(LoggedTest, WhatIsCommittedAndNotYetAppliedStaysInTheLogOrIsFlushed) {
  StartThree(GetParam());
  ExpectApplied(0, 1);
  ExpectApplied(0, 2);
  rig_.Advance(seconds(1));
  ASSERT_TRUE(rig_.Flush(1).ok());
  ExpectApplied(0, 3);
  for (BucketId bucket = 0; bucket < 3; ++bucket) {
    const Configuration& line = rig_.map[bucket];
    const Beacon beacon{.generation = line.generation,
                        .primary = line.primary,
                        .replicas = line.replicas,
                        .committed = 3,
                        .sent = rig_.clock.Now()};
    rig_.server(1).OnPeerMessage(
        line.primary, {.bucket = bucket, .configuration_version = line.version, .kind = beacon});
  }
  ASSERT_TRUE(rig_.server(1).Flush().ok());
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    rig_.Kill(slot);
  }
  rig_.Start(1, Options(GetParam()));
  rig_.RestoreAll(1);
  EXPECT_EQ(Included(1), 3u);
}

INSTANTIATE_TEST_SUITE_P(Modes,
                         LoggedTest,
                         ::testing::Values(PersistenceMode::kWal, PersistenceMode::kWalSync));

TEST_F(ReplicatedTest, WhatIsLoggedAndNotSyncedCountsAsPersistedWhenItIsFlushed) {
  StartThree(PersistenceMode::kWal);
  ExpectApplied(0, 1);
  EXPECT_EQ(rig_.server(0).RequestFlush(kWriter, std::vector<ShardId>{0}).at(0).sequence, 0u);
  rig_.Advance(milliseconds(500));
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    ASSERT_TRUE(rig_.Flush(slot).ok());
  }
  rig_.Advance(milliseconds(500));
  EXPECT_EQ(rig_.server(0).RequestFlush(kWriter, std::vector<ShardId>{0}).at(0).sequence, 1u);
}

TEST_F(ReplicatedTest, WhatIsSyncedIsPersisted) {
  StartThree(PersistenceMode::kWalSync);
  EXPECT_EQ(rig_.Push(0, MakePush(1))->at(0).persisted, 1u);
}

TEST_F(ReplicatedTest, OnlyThePrimarySaysWhatIsPersisted) {
  StartThree();
  ExpectApplied(0, 1);
  rig_.Advance(seconds(1));
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    ASSERT_TRUE(rig_.Flush(slot).ok());
  }
  rig_.Advance(milliseconds(500));
  const std::vector<ShardId> shards = {0, 999};
  EXPECT_EQ(rig_.server(0).RequestFlush(kWriter, shards),
            (std::vector<PersistedShard>{{0, 1}, {999, 0}}));
  EXPECT_EQ(rig_.server(1).RequestFlush(kWriter, shards),
            (std::vector<PersistedShard>{{0, 0}, {999, 0}}));
}

TEST_F(ReplicatedTest, WithoutPersistenceNothingIsWritten) {
  StartThree(PersistenceMode::kNone);
  ExpectApplied(0, 1);
  ASSERT_TRUE(rig_.Put(0, "ledger/0", 0, "a").has_value());
  std::size_t keys = 0;
  ASSERT_TRUE(rig_.store(0)
                  .Scan("",
                        [&](std::string_view key, std::string_view) {
                          keys += key != "incarnation" ? 1 : 0;
                          return true;
                        })
                  .ok());
  EXPECT_EQ(keys, 0u);
}

}  // namespace
}  // namespace adamant::parameter_server
