#include "services/parameter_server/core/storage/snapshots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fakes/interrupted_store.h"
#include "tests/unit/services/parameter_server/core/serving/server_fixture.h"

// Snapshots that are asked for again.
namespace adamant::parameter_server {
namespace {

using std::chrono::seconds;
using ::testing::Each;
using ::testing::Field;
using ::testing::IsEmpty;

class SnapshotsTest : public ServerFixture {
 protected:
  static ParameterServerOptions Replicated() {
    ParameterServerOptions options = Flat(4, OnWorker());
    options.min_in_sync = 2;
    return options;
  }

  /// Server 0 is primary of all buckets, the others hold them too.
  void CreateOnThree() {
    rig_.emplace(3);
    for (const std::uint32_t slot : {0u, 1u, 2u}) {
      rig_->Start(slot, Replicated());
    }
    rig_->AssignAll(0);
    rig_->AddEverywhere(1);
    rig_->AddEverywhere(2);
    ASSERT_THAT(rig_->map, Each(Field(&Configuration::replicas, testing::SizeIs(3))));
  }

  void PushNext() {
    ASSERT_EQ(PushOne({.shard = 0,
                       .sequence = ++sequence_,
                       .kind = UpdateKind::kWeightChange,
                       .values = values_})
                  .outcome,
              PushOutcome::kApplied);
  }

  /// Of the copy that holds shard 0.
  std::uint64_t ChecksumOf(const absl::StatusOr<std::vector<SnapshotBucket>>& taken) {
    EXPECT_TRUE(taken.ok()) << taken.status();
    for (const SnapshotBucket& about : *taken) {
      if (about.bucket == BucketOfShard()) {
        return about.checksum;
      }
    }
    ADD_FAILURE() << "the bucket was not taken";
    return 0;
  }

  BucketId BucketOfShard() { return rig_->server(1).layout().shards()[0].bucket; }

  /// Shard 0 of snapshot 1 in that copy, from `slot`.
  ShardValue FetchCopy(std::uint32_t slot, std::uint64_t checksum) {
    const auto values = rig_->server(slot).Fetch(
        nullptr, std::vector<ShardId>{0}, 1, std::vector<std::uint64_t>{checksum});
    EXPECT_TRUE(values.ok()) << values.status();
    return values->at(0);
  }

 private:
  const std::vector<float> values_{1, 1, 1, 1};
  Sequence sequence_ = 0;
};

TEST_F(SnapshotsTest, ACommandThatComesLateLeavesTheSnapshotAsItWas) {
  CreateOnThree();
  PushNext();
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok());
  PushNext();
  const ConfigurationVersion before = rig_->map[0].version;
  rig_->Kill(2);
  ASSERT_GT(rig_->map[0].version, before);
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok());
  EXPECT_THAT(Values(0, 1), Each(1)) << "workers push again by now";
  EXPECT_THAT(Values(0), Each(2));
}

TEST_F(SnapshotsTest, WhoIsNotPrimaryAnyMoreGivesTheCopyThatAManifestNames) {
  CreateOnThree();
  PushNext();
  const std::uint64_t checksum = ChecksumOf(server().TakeSnapshot({.snapshot = 1}));
  PushNext();
  rig_->Kill(0);
  rig_->Start(0, Replicated());
  ASSERT_NE(rig_->map[BucketOfShard()].primary.slot, 0u);
  EXPECT_NE(server().Fetch(&kWriter, std::vector<ShardId>{0}, 1)->at(0).outcome,
            FetchOutcome::kFound)
      << "a worker is told to ask the primary";
  const auto copy = FetchCopy(0, checksum);
  ASSERT_EQ(copy.outcome, FetchOutcome::kFound);
  EXPECT_THAT(copy.values, Each(1));
  EXPECT_EQ(FetchCopy(1, checksum).outcome, FetchOutcome::kNoSuchSnapshot) << "it took none";
}

// A late command, or one of another generation, may leave another copy under the same number.
TEST_F(SnapshotsTest, ACopyThatNoManifestNamesIsNotGivenForIt) {
  CreateOnThree();
  PushNext();
  const std::uint64_t checksum = ChecksumOf(server().TakeSnapshot({.snapshot = 1}));
  PushNext();
  rig_->Kill(0);
  rig_->Advance(seconds(10));
  const std::uint32_t next = rig_->map[BucketOfShard()].primary.slot;
  ASSERT_NE(next, 0u);
  const auto late = rig_->server(next).TakeSnapshot({.snapshot = 1});
  EXPECT_EQ(FetchCopy(next, checksum).outcome, FetchOutcome::kNoSuchSnapshot);
  EXPECT_THAT(FetchCopy(next, ChecksumOf(late)).values, Each(2));
}

TEST_F(SnapshotsTest, AfterALossItIsTakenOfWhatCameBack) {
  Create(Flat(4, OnWorker()));
  PushNext();
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok());
  PushNext();
  ASSERT_TRUE(rig_->Flush(0).ok());
  Restart(Flat(4, OnWorker()));
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok());
  EXPECT_THAT(Values(0, 1), Each(2));
}

TEST_F(SnapshotsTest, OnlyWhatIsToBeKeptStaysInTheStore) {
  Create(Flat(4, OnWorker()));
  for (const std::uint64_t snapshot : {1, 2, 3}) {
    PushNext();
    ASSERT_TRUE(server().TakeSnapshot({.snapshot = snapshot}).ok());
  }
  ASSERT_TRUE(rig_->Flush(0).ok());
  ASSERT_TRUE(Snapshots(0, rig_->store(0)).KeepOnly({1, 3}).ok());
  std::set<std::string> folders;
  ASSERT_TRUE(rig_->store(0)
                  .Scan("",
                        [&](std::string_view key, std::string_view) {
                          folders.emplace(key.substr(0, key.find('/', key.find('/') + 1)));
                          return true;
                        })
                  .ok());
  EXPECT_THAT(folders,
              testing::ElementsAre("snapshot/0000000000000001",
                                   "snapshot/0000000000000003",
                                   "snapshots/0000000000000001",
                                   "snapshots/0000000000000003"));
  EXPECT_THAT(Values(0, 1), Each(1));
  EXPECT_THAT(Values(0, 3), Each(3));
}

TEST_F(SnapshotsTest, WhoMayHaveBeenReplacedTakesNone) {
  CreateOnThree();
  PushNext();
  for (const std::uint32_t other : {1u, 2u}) {
    rig_->cut.insert({0, other});
    rig_->cut.insert({other, 0});
  }
  rig_->Advance(seconds(3));
  ASSERT_EQ(rig_->map[0].primary, rig_->server_id(0)) << "nobody has taken over yet";
  EXPECT_EQ(server().TakeSnapshot({.snapshot = 1}).status().code(), absl::StatusCode::kUnavailable);
}

// Workers are to send again what was rolled back: by then it would have been copied, and would not
// be copied once more.
TEST_F(SnapshotsTest, ACommandForAnEarlierGenerationCopiesNothing) {
  CreateOnThree();
  PushNext();
  const std::uint64_t generation = rig_->map[0].generation;
  const auto late = server().TakeSnapshot({.snapshot = 1, .generations = {generation - 1}});
  EXPECT_EQ(late.status().code(), absl::StatusCode::kUnavailable) << late.status();
  PushNext();
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1, .generations = {generation}}).ok());
  EXPECT_THAT(Values(0, 1), Each(2));
}

TEST(SnapshotsOfManyBucketsTest, TheyAreSyncedTogether) {
  constexpr std::size_t kBuckets = 5000;
  storage::MemoryStore disk;
  fakes::InterruptedStore store(disk);
  Snapshots snapshots(1, store);
  RecordMap records;
  records["ledger"] = {.version = 1, .value = "dispatched"};
  std::vector<Snapshots::Item> items;
  for (BucketId bucket = 0; bucket < kBuckets; ++bucket) {
    items.push_back({.about = {.bucket = bucket, .configuration_version = 1, .generation = 1},
                     .source = {.shards = {}, .records = records}});
  }
  const auto taken = snapshots.Take(7, items);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->size(), kBuckets);
  EXPECT_LE(store.TakeSyncs(), 10);
  EXPECT_EQ(snapshots.All()->size(), kBuckets);
  EXPECT_EQ(snapshots.LoadRecords(7, kBuckets - 1)->size(), 1u);
  items.front().about.generation = 2;
  ASSERT_TRUE(snapshots.Take(7, items).ok());
  EXPECT_EQ(store.TakeSyncs(), 3)
      << "the old copy goes before the new one, and that before its mark";
  EXPECT_EQ((*snapshots.Find(7, 0))->generation, 2u);
}

// The damage of a disk, found by a worker that evaluates: nothing is pushed meanwhile.
class DamagedSnapshotTest : public SnapshotsTest {
 protected:
  DamagedSnapshotTest() {
    ParameterServerOptions options = Flat(4, OnWorker());
    options.parameters.push_back({.name = "v", .layer = "l", .shape = {4}});
    options.optimisers.resize(2, OnWorker());
    Create(options);
    PushNext();
    const auto taken = server().TakeSnapshot({.snapshot = 1});
    EXPECT_TRUE(taken.ok()) << taken.status();
    mark_ = Mark();
    EXPECT_TRUE(rig_->Flush(0).ok());
  }

  /// The value of a shard in the snapshot.
  std::string Key(ShardId shard) {
    char bucket[16];
    std::snprintf(bucket, sizeof(bucket), "%08x", server().layout().shards()[shard].bucket.value());
    return "snapshot/0000000000000001/" + std::string(bucket) + "/" + LiveShardKey(shard);
  }

  FetchOutcome FetchAsWorker(ShardId shard) {
    const auto values = server().Fetch(&kWriter, std::vector<ShardId>{shard}, 1);
    EXPECT_TRUE(values.ok()) << values.status();
    rig_->Run();
    return values.ok() ? values->at(0).outcome : FetchOutcome::kNotReady;
  }

  /// What the controller was told of it.
  std::string Mark() {
    std::string marks;
    EXPECT_TRUE(rig_->store(0)
                    .Scan("snapshots/",
                          [&](std::string_view key, std::string_view value) {
                            marks += std::string(key) + "=" + std::string(value) + "\n";
                            return true;
                          })
                    .ok());
    return marks;
  }

  std::string mark_;
};

TEST_F(DamagedSnapshotTest, IsWrittenAnewFromMemoryWhileNothingIsPushed) {
  rig_->store(0).Corrupt(Key(0));
  EXPECT_EQ(FetchAsWorker(0), FetchOutcome::kNoSuchSnapshot);
  ASSERT_TRUE(rig_->storage_error(0).ok()) << rig_->storage_error(0);
  EXPECT_EQ(FetchAsWorker(0), FetchOutcome::kFound);
  EXPECT_THAT(Values(0, 1), Each(1));
  EXPECT_EQ(Mark(), mark_);
  EXPECT_EQ(server().scrubber().totals().damaged, 1u);
  EXPECT_THAT(server().scrubber().damages(),
              testing::ElementsAre(
                  "memory: checksum mismatch; what is damaged is written anew from memory"));
  PushNext();
  EXPECT_THAT(Values(0, 1), Each(1)) << "it is a copy";
}

TEST_F(DamagedSnapshotTest, IsWrittenAnewWhereTheStoreFindsItToBeGoodAndItIsNot) {
  std::string stored = rig_->store(0).Get(Key(0)).value();
  stored[stored.size() / 2] ^= 1;
  ASSERT_TRUE(rig_->store(0).Write({{.key = Key(0), .value = stored}}).ok());
  EXPECT_EQ(FetchAsWorker(0), FetchOutcome::kNoSuchSnapshot);
  EXPECT_EQ(FetchAsWorker(0), FetchOutcome::kFound);
  EXPECT_THAT(Values(0, 1), Each(1));
}

TEST_F(DamagedSnapshotTest, RecordsThatHaveChangedSinceDoNotHinderIt) {
  for (const std::string key : {"ledger/0", "ledger/1", "ledger/2"}) {  // of both buckets
    ASSERT_TRUE(rig_->Put(0, key, 0, "later")->stored);
  }
  rig_->store(0).Corrupt(Key(0));
  EXPECT_EQ(FetchAsWorker(0), FetchOutcome::kNoSuchSnapshot);
  EXPECT_EQ(FetchAsWorker(0), FetchOutcome::kFound);
}

TEST_F(DamagedSnapshotTest, AServerThatCannotMakeItAnewLeavesToAnotherCopy) {
  PushNext();
  rig_->store(0).Corrupt(Key(0));
  EXPECT_EQ(FetchAsWorker(0), FetchOutcome::kNoSuchSnapshot);
  EXPECT_TRUE(absl::IsDataLoss(rig_->storage_error(0))) << rig_->storage_error(0);
  EXPECT_THAT(std::string(rig_->storage_error(0).message()),
              testing::HasSubstr("memory: checksum mismatch"));
}

TEST_F(DamagedSnapshotTest, WhoOnlyReadsIsToldAndEndsNothing) {
  PushNext();
  rig_->store(0).Corrupt(Key(0));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(absl::IsDataLoss(server().Fetch(nullptr, std::vector<ShardId>{0}, 1).status()));
    rig_->Run();
  }
  EXPECT_TRUE(rig_->storage_error(0).ok()) << rig_->storage_error(0);
  EXPECT_THAT(server().scrubber().damages(),
              testing::ElementsAre(testing::HasSubstr("of checkpoint 1 cannot be read")));
}

TEST_F(SnapshotsTest, ItIsTakenByPrimariesAlone) {
  CreateOnThree();
  PushNext();
  const auto taken = rig_->server(1).TakeSnapshot({.snapshot = 1});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(*taken, IsEmpty());
}

}  // namespace
}  // namespace adamant::parameter_server
