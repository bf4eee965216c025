#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "tests/unit/services/parameter_server/core/serving/server_rig.h"

// What workers are told to be on disk, and may thus forget.
namespace adamant::parameter_server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WorkerId kWriter{.slot = 0, .incarnation = 3};

class PersistedTest : public ::testing::Test {
 protected:
  PersistedTest() {
    for (const std::uint32_t slot : {0u, 1u, 2u}) {
      rig_.Start(slot, Options());
    }
    rig_.AssignAll(0);
    rig_.AddEverywhere(1);
    rig_.AddEverywhere(2);
    EXPECT_EQ(rig_.map[0].replicas.size(), 3u);
  }

  static ParameterServerOptions Options() {
    return {.job_uid = 7,
            .writers = 4,
            .parameters = {{.name = "w", .layer = "l", .shape = {8}}},
            .optimisers = {{.rate = 0.1}},
            .min_in_sync = 1,
            .flush = {.interval = std::chrono::hours(1)}};  // it is due when it is asked for
  }

  std::optional<std::vector<ShardAck>> Push(std::uint32_t slot, Sequence sequence) {
    const auto values = std::make_shared<const std::vector<float>>(8, 1.0F);
    return rig_.Push(
        slot,
        {.writer = kWriter,
         .updates = {{.sequence = sequence, .kind = UpdateKind::kGradient, .values = *values}},
         .owner = values});
  }

  void ExpectApplied(std::uint32_t slot, Sequence sequence) {
    const auto acks = Push(slot, sequence);
    ASSERT_TRUE(acks.has_value());
    EXPECT_EQ(acks->at(0).outcome, PushOutcome::kApplied);
  }

  bool LogIsEmpty(std::uint32_t slot) {
    bool empty = true;
    const auto found = [&](std::string_view, std::string_view) { return empty = false; };
    EXPECT_TRUE(rig_.store(slot).Scan("log/", found).ok());
    return empty;
  }

  void Flush(const std::vector<std::uint32_t>& slots) {
    rig_.Advance(milliseconds(500));  // a beacon tells what is committed
    for (const std::uint32_t slot : slots) {
      ASSERT_TRUE(rig_.Flush(slot).ok());
    }
    rig_.Advance(milliseconds(500));  // the answer to another what is flushed
  }

  /// As an acknowledgement says it, without asking for a flush.
  std::uint64_t Persisted(std::uint32_t slot) {
    return rig_.server(slot).Fetch(&kWriter, std::vector<ShardId>{0}, 0)->at(0).persisted;
  }

  ServerRig rig_{3};
};

TEST_F(PersistedTest, IsWhatAllReplicasHaveFlushed) {
  ExpectApplied(0, 1);
  Flush({0, 1});
  EXPECT_EQ(Persisted(0), 0u) << "one replica has not";
  ExpectApplied(0, 2);
  Flush({2});
  EXPECT_EQ(Persisted(0), 1u) << "the primary has not flushed the second";
  for (Sequence sequence = 3; sequence <= 20; ++sequence) {
    ExpectApplied(0, sequence);
    Flush({0, 1});
  }
  EXPECT_LE(Persisted(0), 2u);
  Flush({2});
  EXPECT_GE(Persisted(0), 3u) << "some flush between is remembered";
  ExpectApplied(0, 21);
  Flush({0, 1, 2});
  EXPECT_EQ(Persisted(0), 21u);
}

TEST_F(PersistedTest, IsHeldByAReplicaWhoseDiskIsFull) {
  ExpectApplied(0, 1);
  rig_.store(2).SetFull(true);
  Flush({0, 1, 2});
  EXPECT_EQ(Persisted(0), 0u);
  rig_.store(2).SetFull(false);
  Flush({2});
  EXPECT_EQ(Persisted(0), 1u);
}

TEST_F(PersistedTest, IsNotHeldByAReplicaThatWasDropped) {
  ExpectApplied(0, 1);
  Flush({0, 1});
  rig_.Kill(2);
  rig_.Advance(milliseconds(500));
  EXPECT_EQ(Persisted(0), 1u);
}

TEST_F(PersistedTest, ANewPrimaryClaimsNoMoreThanAllHold) {
  ExpectApplied(0, 1);
  Flush({0, 1, 2});
  ExpectApplied(0, 2);
  Flush({0});
  rig_.Kill(0);
  const std::uint32_t successor = rig_.map[0].primary.slot;
  const std::uint32_t other = 3 - successor;
  ExpectApplied(successor, 3);
  rig_.Advance(milliseconds(500));
  EXPECT_EQ(Persisted(successor), 1u);
  Flush({successor});
  EXPECT_EQ(Persisted(successor), 1u);
  rig_.Kill(other);
  rig_.Advance(milliseconds(50));
  EXPECT_EQ(Persisted(successor), 3u) << "alone, with nothing more to flush";
}

TEST_F(PersistedTest, WhatAWorkerMayForgetComesBackFromWhicheverDisk) {
  ExpectApplied(0, 1);
  Flush({0, 1, 2});
  ExpectApplied(0, 2);
  Flush({0, 2});
  const std::uint64_t persisted = Persisted(0);
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    rig_.Kill(slot);
  }
  rig_.Start(1, Options());
  rig_.RestoreAll(1);
  EXPECT_GE(rig_.server(1).Fetch(&kWriter, std::vector<ShardId>{0}, 0)->at(0).included_sequence,
            persisted);
  EXPECT_EQ(Persisted(1), 1u);
}

TEST_F(PersistedTest, ALearnerIsAddedWhenItsDiskHasWhatWorkersMayHaveForgotten) {
  rig_.Kill(2);
  rig_.Start(2, Options());
  ExpectApplied(0, 1);
  rig_.store(2).SetFull(true);  // the copy is on its way for a while
  rig_.AddEverywhere(2);
  ExpectApplied(0, 2);
  Flush({0, 1});
  EXPECT_EQ(Persisted(0), 2u);
  rig_.store(2).SetFull(false);
  ASSERT_TRUE(rig_.server(2).DoStorage().ok());
  rig_.Advance(seconds(1));
  EXPECT_EQ(rig_.map[0].replicas.size(), 2u) << "its disk has what it was when the copy was made";
  EXPECT_LE(rig_.server(2).flusher().DueAt(), rig_.clock.Now()) << "it is asked to flush";
  Flush({2});
  EXPECT_EQ(rig_.map[0].replicas.size(), 3u);
}

TEST_F(PersistedTest, ARequestReachesAllReplicasAndIsAnsweredAtOnce) {
  ExpectApplied(0, 1);
  rig_.Advance(milliseconds(500));  // the replicas know that it is committed
  EXPECT_EQ(rig_.server(0).RequestFlush(kWriter, std::vector<ShardId>{0}).at(0).sequence, 0u);
  rig_.Advance(milliseconds(50));
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    EXPECT_LE(rig_.server(slot).flusher().DueAt(), rig_.clock.Now()) << slot;
    ASSERT_TRUE(rig_.Flush(slot).ok());
  }
  EXPECT_EQ(Persisted(0), 1u) << "no time has passed since";
}

TEST_F(PersistedTest, AnEntryWithoutUpdatesHoldsNothing) {
  ExpectApplied(0, 1);
  Flush({0, 1, 2});
  ASSERT_TRUE(rig_.Put(0, "ledger/0", 0, "a")->stored);
  rig_.Kill(2);
  rig_.Start(2, Options());
  rig_.AddEverywhere(2);
  ExpectApplied(0, 2);
  Flush({0, 1, 2});
  EXPECT_EQ(Persisted(0), 2u);
}

TEST_F(PersistedTest, ADuplicateThatWaitedIsAnsweredUnderTheConfigurationThatCommittedIt) {
  rig_.cut.insert({0, 2});
  EXPECT_FALSE(Push(0, 1).has_value());
  auto acks = std::make_shared<std::vector<ShardAck>>();
  const auto values = std::make_shared<const std::vector<float>>(8, 1.0F);
  rig_.server(0).Submit(
      {.writer = kWriter,
       .updates = {{.sequence = 1, .kind = UpdateKind::kGradient, .values = *values}},
       .owner = values},
      [acks](std::vector<ShardAck> settled) { *acks = std::move(settled); });
  const ConfigurationVersion judged = rig_.map[0].version;
  rig_.Advance(milliseconds(3500));  // the silent replica is dropped
  ASSERT_EQ(acks->size(), 1u);
  EXPECT_EQ(acks->at(0).outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(acks->at(0).configuration_version, judged + 1);
}

TEST_F(PersistedTest, APutIsRefusedForWhatIsCommittedOnly) {
  rig_.cut.insert({0, 1});
  EXPECT_FALSE(rig_.Put(0, "ledger/0", 0, "value").has_value());
  EXPECT_EQ(rig_.Put(0, "ledger/0", 0, "value")->access, Access::kNotReady);
  rig_.cut.clear();
  rig_.Advance(seconds(2));
  const std::optional<RecordAnswer> again = rig_.Put(0, "ledger/0", 0, "value");
  EXPECT_EQ(again->access, Access::kReady);
  EXPECT_FALSE(again->stored);
  EXPECT_EQ(again->record.version, 1u);
}

// What overwrites it in the log of server 2 is not logged on disk.
TEST_F(PersistedTest, APutThatWasOverwrittenDoesNotComeBackInPlaceOfACommittedOne) {
  ASSERT_TRUE(rig_.Put(0, "ledger/0", 0, "first")->stored);
  rig_.cut.insert({0, 1});
  ASSERT_FALSE(rig_.Put(0, "ledger/0", 1, "stale").has_value());
  rig_.Kill(0);
  ASSERT_EQ(rig_.map[0].primary.slot, 1u);
  ASSERT_EQ(rig_.map[0].replicas.size(), 2u);
  ExpectApplied(1, 1);
  ASSERT_TRUE(rig_.Put(1, "ledger/0", 1, "committed")->stored);
  rig_.Kill(1, false);  // server 2 is not to take over
  rig_.Kill(2);
  rig_.Start(2, Options());
  rig_.RestoreAll(2);
  EXPECT_EQ(rig_.server(2).records().Get("ledger/0").record.version, 2u);
  EXPECT_EQ(rig_.server(2).records().Get("ledger/0").record.value, "committed");
}

// It was flushed past the overwritten entry, which only leaves the log with a record.
TEST_F(PersistedTest, NorInPlaceOfOneThatWasStored) {
  ASSERT_TRUE(rig_.Put(0, "ledger/0", 0, "first")->stored);
  rig_.cut.insert({0, 1});
  ASSERT_FALSE(rig_.Put(0, "ledger/0", 1, "stale").has_value());
  rig_.Kill(0);
  ASSERT_EQ(rig_.map[0].primary.slot, 1u);
  ExpectApplied(1, 1);
  ExpectApplied(1, 2);
  ASSERT_TRUE(rig_.Flush(2).ok());
  ASSERT_TRUE(rig_.Put(1, "ledger/0", 1, "committed")->stored);
  ExpectApplied(1, 3);  // server 2 hears that the record is committed, and stores it
  EXPECT_TRUE(LogIsEmpty(2));
  rig_.Kill(1, false);  // server 2 is not to take over
  rig_.Kill(2);
  rig_.Start(2, Options());
  rig_.RestoreAll(2);
  EXPECT_EQ(rig_.server(2).records().Get("ledger/0").record.value, "committed");
}

// The other replicas have only its entry in the log: they hear that it is committed with the next
// one.
TEST_F(PersistedTest, AnAcknowledgedRecordSurvivesTheLossOfPowerAtEachReplica) {
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    SCOPED_TRACE(slot);
    const std::uint64_t version = slot;
    const std::uint32_t primary = rig_.map[0].primary.slot;
    ASSERT_TRUE(rig_.Put(primary, "ledger/0", version, "value " + std::to_string(slot))->stored);
    for (const std::uint32_t each : {0u, 1u, 2u}) {
      rig_.store(each).LosePower();
      rig_.Kill(each, each + 1 == 3);
    }
    for (const std::uint32_t each : {0u, 1u, 2u}) {
      rig_.Start(each, Options());
    }
    rig_.RestoreAll(slot);
    EXPECT_EQ(rig_.server(slot).records().Get("ledger/0").record.value,
              "value " + std::to_string(slot));
    for (const std::uint32_t each : {0u, 1u, 2u}) {
      if (each != slot) {
        rig_.AddEverywhere(each);
      }
    }
    ASSERT_EQ(rig_.map[0].replicas.size(), 3u);
  }
}

TEST_F(PersistedTest, NorDoesOneThatLayBehindTheOverwrittenEntry) {
  ASSERT_TRUE(rig_.Put(0, "ledger/0", 0, "first")->stored);
  rig_.cut.insert({0, 1});
  ASSERT_FALSE(Push(0, 1).has_value());
  ASSERT_FALSE(rig_.Put(0, "ledger/0", 1, "stale").has_value());
  rig_.Kill(0);
  ASSERT_EQ(rig_.map[0].primary.slot, 1u);
  ASSERT_TRUE(rig_.Put(1, "ledger/0", 1, "committed")->stored);  // where the push was
  rig_.Kill(1, false);                                           // server 2 is not to take over
  rig_.Kill(2);
  rig_.Start(2, Options());
  rig_.RestoreAll(2);
  EXPECT_EQ(rig_.server(2).records().Get("ledger/0").record.value, "committed");
}

}  // namespace
}  // namespace adamant::parameter_server
