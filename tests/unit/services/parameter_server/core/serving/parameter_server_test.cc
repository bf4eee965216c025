#include "services/parameter_server/core/serving/parameter_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "services/parameter_server/core/storage/stored_bucket.h"
#include "tests/unit/services/parameter_server/core/serving/server_fixture.h"

namespace adamant::parameter_server {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;

class ParameterServerTest : public ServerFixture {
 protected:
  static ParameterServerOptions Random() {
    ParameterServerOptions options = Flat(4, OnWorker());
    options.parameters[0].initialisation = Initialisation::kHe;
    return options;
  }

  ShardUpdate Ones(Sequence sequence) {
    return {.sequence = sequence, .kind = UpdateKind::kWeightChange, .values = ones_};
  }

  // By somebody of this slot, before its first process.
  void ExpectNobodyOpened(const storage::Change& mark) {
    ASSERT_TRUE(rig_->store(0).Write({mark}).ok());
    Create(Random());
    EXPECT_EQ(rig_->stored(0).previous_incarnation, 0u);
    Restart(Random());
    EXPECT_EQ(rig_->stored(0).previous_incarnation, 1u);
  }

  const std::vector<float> ones_{1, 1, 1, 1};
};

TEST_F(ParameterServerTest, CreatedShardsHoldTheValuesOfTheSeed) {
  Create(Random());
  std::vector<float> expected(4);
  InitialiseShard(5, server().layout().parameters()[0], server().layout().shards()[0], expected);
  EXPECT_EQ(Values(0), expected);
  EXPECT_NE(expected, std::vector<float>(4));
}

TEST_F(ParameterServerTest, ABucketOfAnotherServerIsRefused) {
  Create(Random());
  rig_->AssignAll(0);
  for (Configuration& line : rig_->map) {
    line = {.version = 3, .generation = 1, .primary = {.slot = 1, .incarnation = 1}};
    line.replicas = {line.primary};
  }
  rig_->Publish();
  EXPECT_EQ(server().Fetch(nullptr, std::vector<ShardId>{0}, 0)->at(0).outcome,
            FetchOutcome::kNotPrimary);
  EXPECT_EQ(server().records().Get("k").access, Access::kNotPrimary);
  EXPECT_EQ(PushOne(Ones(1)).outcome, PushOutcome::kNotPrimary);
}

TEST_F(ParameterServerTest, AnOldRecordIsIgnored) {
  Create(Random());
  const std::vector<Configuration> current = rig_->map;
  for (Configuration& line : rig_->map) {
    line.version = 0;
    line.primary = {.slot = 1, .incarnation = 1};
  }
  rig_->Publish();
  rig_->map = current;
  EXPECT_EQ(PushOne(Ones(1)).outcome, PushOutcome::kApplied);
}

TEST_F(ParameterServerTest, ARecordThatWasOnlyLoggedIsStoredWhenItComesBack) {
  ParameterServerOptions options = Random();
  options.buckets = 1;
  Create(options);
  ASSERT_TRUE(rig_->Put(0, "a", 0, "one")->stored);
  rig_->store(0).FailNextSync(1);  // it is in the log, and not yet a record
  EXPECT_FALSE(rig_->Put(0, "a", 1, "two").has_value());
  Restart(options);
  EXPECT_EQ(server().records().Get("a").record.version, 2u);
  for (std::uint64_t version = 0; version < 5; ++version) {
    ASSERT_TRUE(rig_->Put(0, "b", version, "other")->stored);  // takes the log's places
  }
  Restart(options);
  EXPECT_EQ(server().records().Get("a").record.version, 2u);
  EXPECT_EQ(server().records().Get("b").record.version, 5u);
}

TEST_F(ParameterServerTest, AFullDiskIsNotOpenedUntilThereIsRoom) {
  Create(Random());
  rig_->store(0).SetFull(true);
  EXPECT_EQ(server().ReadStored().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(server().alarm(), HasSubstr("disk full"));
  rig_->store(0).SetFull(false);
  EXPECT_TRUE(server().ReadStored().ok());
  EXPECT_EQ(server().alarm(), "");
}

TEST_F(ParameterServerTest, AShardThatIsMissingIsLostAndNeverInitialisedAgain) {
  Create(Random());
  ASSERT_TRUE(rig_->store(0).Write({{.key = "shard/00000000", .value = "", .erase = true}}).ok());
  rig_->reports.clear();
  Restart(Random());
  const BucketId bucket = server().layout().shards()[0].bucket;
  const std::string missing = "stored shard 0 is missing";
  for (const StoredBucket& stored : rig_->stored(0).buckets) {
    EXPECT_EQ(stored.complete, stored.bucket != bucket);
    EXPECT_EQ(stored.detail, stored.complete ? "" : missing);
  }
  ASSERT_EQ(rig_->reports.size(), 2u);
  for (const BucketReport& report : rig_->reports) {
    EXPECT_EQ(report.lost, report.bucket == bucket);
    EXPECT_EQ(report.detail, report.lost ? missing : "");
  }
  EXPECT_EQ(server().Reports().size(), 2u);
  EXPECT_EQ(PushOne(Ones(1)).outcome, PushOutcome::kNotReady);
  EXPECT_EQ(rig_->store(0).Get("shard/00000000").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ParameterServerTest, ACorruptShardIsLost) {
  Create(Random());
  std::string stored = *rig_->store(0).Get("shard/00000000");
  stored[60] = static_cast<char>(stored[60] ^ 1);
  ASSERT_TRUE(rig_->store(0).Write({{"shard/00000000", stored}}).ok());
  Restart(Random());
  const BucketId bucket = server().layout().shards()[0].bucket;
  EXPECT_THAT(rig_->stored(0).buckets[bucket].detail, HasSubstr("checksum"));
}

TEST_F(ParameterServerTest, WhatIsOfAnotherJobIsToldWithItsFolder) {
  Create(Random());
  ParameterServerOptions another = Random();
  ++another.job_uid;
  another.folder = "/run/data/parameter-server-0/shards";
  rig_->Kill(0);
  rig_->Start(0, another);
  const BucketId bucket = server().layout().shards()[0].bucket;
  EXPECT_EQ(rig_->stored(0).buckets[bucket].detail,
            another.folder +
                ": stored shard 0 belongs to job 7, not to 8: give every job its own data folder");
}

TEST_F(ParameterServerTest, AStoreInPlaceOfADamagedOneSaysSoOfEveryBucket) {
  ParameterServerOptions options = Random();
  options.damage = "records/000004.log: is damaged";
  rig_->Start(0, options);
  const StoredBuckets stored = rig_->stored(0);
  ASSERT_EQ(stored.buckets.size(), 2u);
  for (const StoredBucket& bucket : stored.buckets) {
    EXPECT_FALSE(bucket.complete);
    EXPECT_EQ(bucket.detail, options.damage);
  }
}

TEST_F(ParameterServerTest, ABucketThatComesBackSoonIsReadOnce) {
  for (const auto& [waited, lost] :
       {std::pair(std::chrono::seconds(59), false), std::pair(std::chrono::seconds(60), true)}) {
    rig_.emplace(1);
    Create(Flat(4, OnWorker()));
    rig_->Kill(0);
    rig_->Start(0, Flat(4, OnWorker()));
    rig_->store(0).Corrupt(LiveShardKey(0));  // after it was read
    rig_->Advance(waited);
    rig_->reports.clear();
    rig_->RestoreAll(0);
    ASSERT_EQ(rig_->reports.size(), 2u);
    for (const BucketReport& report : rig_->reports) {
      EXPECT_EQ(report.lost, lost && report.bucket == server().layout().shards()[0].bucket);
    }
  }
}

TEST_F(ParameterServerTest, TheStoreNamesTheProcessThatOpenedItLast) {
  Create(Random());
  EXPECT_EQ(rig_->stored(0).previous_incarnation, 0u);
  Restart(Random());
  EXPECT_EQ(rig_->stored(0).previous_incarnation, 1u);
}

TEST_F(ParameterServerTest, OneThatWasGivenUpDoesNotHideWhoOpenedTheStoreBefore) {
  Create(Random());
  rig_->Kill(0);
  ASSERT_TRUE(rig_->store(0)
                  .Write({StoreIncarnation(Random().job_uid, {.slot = 0, .incarnation = 5})})
                  .ok());
  Restart(Random());  // its incarnation is 2
  EXPECT_EQ(rig_->stored(0).previous_incarnation, 5u);
  Restart(Random());
  EXPECT_EQ(rig_->stored(0).previous_incarnation, 5u);
}

TEST_F(ParameterServerTest, TheIncarnationsOfAnotherJobAreNobodysHere) {
  ExpectNobodyOpened(StoreIncarnation(Random().job_uid + 1, {.slot = 0, .incarnation = 5}));
}

// It may hold no bucket any more, as that of a job that has succeeded.
TEST_F(ParameterServerTest, AStoreOfAnotherJobIsCalledThat) {
  ASSERT_TRUE(rig_->store(0)
                  .Write({StoreIncarnation(Random().job_uid + 1, {.slot = 0, .incarnation = 5})})
                  .ok());
  Create(Random());
  const auto stored = rig_->stored(0);
  ASSERT_FALSE(stored.buckets.empty());
  for (const StoredBucket& bucket : stored.buckets) {
    EXPECT_FALSE(bucket.complete);
    EXPECT_EQ(bucket.detail, "what is stored is of another job");
  }
}

TEST_F(ParameterServerTest, TheIncarnationsOfAnotherSlotAreNobodysHere) {
  ExpectNobodyOpened(StoreIncarnation(Random().job_uid, {.slot = 1, .incarnation = 5}));
}

TEST_F(ParameterServerTest, AnIncarnationStoredWithoutItsJobIsRead) {
  ASSERT_TRUE(rig_->store(0).Write({{.key = "incarnation", .value = "4"}}).ok());
  Create(Random());
  EXPECT_EQ(rig_->stored(0).previous_incarnation, 4u);
}

TEST_F(ParameterServerTest, AnIncarnationStoredWithoutItsSlotIsRead) {
  const std::string value = "4 " + std::to_string(Random().job_uid);
  ASSERT_TRUE(rig_->store(0).Write({{.key = "incarnation", .value = value}}).ok());
  Create(Random());
  EXPECT_EQ(rig_->stored(0).previous_incarnation, 4u);
}

// An error of a write does not say that nothing was written.
TEST_F(ParameterServerTest, WhatWasOpenedByNobodyElseIsNotTakenForOpenedWhenItIsReadAgain) {
  Create(Random());
  ASSERT_TRUE(server().ReadStored().ok());
  EXPECT_EQ(rig_->stored(0).previous_incarnation, 0u);
}

TEST_F(ParameterServerTest, ValuesStateAndSequencesComeBackFromTheStore) {
  Create(Flat(4, {.kind = OptimiserKind::kMomentum, .rate = 1, .momentum = 0.5}));
  ShardUpdate update{.sequence = 1, .kind = UpdateKind::kGradient, .values = ones_};
  PushOne(update);
  ASSERT_TRUE(rig_->Flush(0).ok());
  const std::vector<float> before = Values(0);
  Restart(Flat(4, {.kind = OptimiserKind::kMomentum, .rate = 1, .momentum = 0.5}));
  EXPECT_EQ(Values(0), before);
  EXPECT_EQ(PushOne(update).outcome, PushOutcome::kDuplicate);
  update.sequence = 2;
  EXPECT_EQ(PushOne(update).version, 2u);
  EXPECT_THAT(Values(0), Each(-1 - 1.5f));  // momentum 0.5 x 1 + 1
}

TEST_F(ParameterServerTest, ASnapshotKeepsItsValuesWhilePushesGoOn) {
  Create(Flat(4, OnWorker()));
  PushOne(Ones(1));
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok());
  PushOne(Ones(2));
  EXPECT_THAT(Values(0), Each(2));
  EXPECT_THAT(Values(0, 1), Each(1));
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok()) << "a repeated command";
  EXPECT_THAT(Values(0, 1), Each(1));
  Restart(Flat(4, OnWorker()));
  EXPECT_THAT(Values(0, 1), Each(1));
}

TEST_F(ParameterServerTest, ASnapshotIsWhatARestoreMayComeBackFrom) {
  Create(Flat(4, OnWorker()));
  PushOne(Ones(1));
  ASSERT_TRUE(rig_->Put(0, "k", 0, "then")->stored);
  const auto taken = server().TakeSnapshot({.snapshot = 1});
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_EQ(taken->size(), 2u);
  EXPECT_EQ(taken->at(0).updates + taken->at(1).updates, 1u);
  EXPECT_EQ(server().TakeSnapshot({.snapshot = 1})->at(0).checksum, taken->at(0).checksum);
  PushOne(Ones(2));
  ASSERT_TRUE(rig_->Put(0, "k", 1, "later")->stored);
  ASSERT_TRUE(rig_->Flush(0).ok());
  rig_->Kill(0);
  rig_->Start(0, Flat(4, OnWorker()));
  rig_->RestoreAll(0, 1);
  EXPECT_THAT(Values(0), Each(1));
  EXPECT_EQ(server().records().Get("k").record.value, "then");
  EXPECT_EQ(PushOne(Ones(2)).outcome, PushOutcome::kApplied);
}

TEST_F(ParameterServerTest, BucketsThatAreMadeAnewHaveNothingOfWhatIsOnDisk) {
  Create(Flat(4, OnWorker()));
  PushOne(Ones(1));
  ASSERT_TRUE(rig_->Put(0, "k", 0, "then")->stored);
  ASSERT_TRUE(rig_->Flush(0).ok());
  rig_->Kill(0);
  rig_->Start(0, Flat(4, OnWorker()));
  rig_->MakeAnew(0, 7);
  EXPECT_THAT(Values(0), Each(0));
  EXPECT_FALSE(server().records().Get("k").record.version > 0);
  EXPECT_EQ(PushOne(Ones(1)).outcome, PushOutcome::kApplied) << "its sequence is not known";
}

TEST_F(ParameterServerTest, ASnapshotThatIsNotThereIsLostWithBucketsThatHaveNoShards) {
  Create(Flat(4, OnWorker()));  // of two buckets one has the shard
  rig_->Kill(0);
  rig_->Start(0, Flat(4, OnWorker()));
  rig_->reports.clear();
  rig_->RestoreAll(0, 7);
  ASSERT_EQ(rig_->reports.size(), 2u);
  EXPECT_THAT(rig_->reports, Each(Field(&BucketReport::lost, true)));
  EXPECT_THAT(rig_->reports, Each(Field(&BucketReport::detail, HasSubstr("is not in snapshot 7"))));
}

TEST_F(ParameterServerTest, SnapshotsThatNeedNotBeKeptAreRemoved) {
  Create(Flat(4, OnWorker()));
  for (std::uint64_t snapshot = 1; snapshot <= 4; ++snapshot) {
    PushOne(Ones(snapshot));
    ASSERT_TRUE(
        server().TakeSnapshot({.snapshot = snapshot, .keep_from = snapshot - 1, .keep = {1}}).ok());
  }
  const auto outcome = [&](std::uint64_t snapshot) {
    return server().Fetch(nullptr, std::vector<ShardId>{0}, snapshot)->at(0).outcome;
  };
  EXPECT_EQ(outcome(1), FetchOutcome::kFound);
  EXPECT_EQ(outcome(2), FetchOutcome::kNoSuchSnapshot);
  EXPECT_EQ(outcome(3), FetchOutcome::kFound);
  EXPECT_EQ(outcome(4), FetchOutcome::kFound);
  EXPECT_EQ(outcome(5), FetchOutcome::kNoSuchSnapshot);
}

TEST_F(ParameterServerTest, AnIncompleteSnapshotIsNone) {
  Create(Flat(4, OnWorker()));
  PushOne(Ones(1));
  rig_->store(0).FailNextSync();
  EXPECT_FALSE(server().TakeSnapshot({.snapshot = 1}).ok());
  EXPECT_EQ(server().Fetch(nullptr, std::vector<ShardId>{0}, 1)->at(0).outcome,
            FetchOutcome::kNoSuchSnapshot);
}

TEST_F(ParameterServerTest, ASnapshotWaitsForAllBuckets) {
  Create(Flat(4, OnWorker()));
  rig_->Kill(0);
  rig_->Start(0, Flat(4, OnWorker()));
  rig_->store(0).SetFull(true);
  rig_->RestoreAll(0);  // cannot mark what it loads
  EXPECT_EQ(server().TakeSnapshot({.snapshot = 1}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ParameterServerTest, AFetchOfAnUnknownShardIsRefused) {
  Create(Flat(4, OnWorker()));
  EXPECT_EQ(server().Fetch(nullptr, std::vector<ShardId>{1}, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace adamant::parameter_server
