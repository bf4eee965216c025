#include "services/parameter_server/core/storage/bucket_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "services/common/storage/memory_store.h"
#include "tests/fakes/fake_clock.h"

namespace adamant::parameter_server {
namespace {

class BucketStoreTest : public ::testing::Test {
 protected:
  Bucket::Content Created() {
    Bucket::Content content{.generation = 1};
    for (const ShardId shard : catalog_.ShardsOf(0)) {
      content.shards.push_back(catalog_.Create(shard, 1));
    }
    return content;
  }

  /// Of the only bucket: an entry that puts a record.
  static PersistTask Logging(Lsn lsn, const std::string& value) {
    Entry entry{.lsn = lsn, .origin = 1};
    entry.puts.push_back({.key = "key", .version = lsn, .value = value});
    return {.generation = 1, .entry = std::make_shared<const Entry>(entry)};
  }

  std::vector<Lsn> Logged(const BucketStore& buckets) {
    const StoredContent content = buckets.Load(0).value();
    std::vector<Lsn> lsns;
    for (const StoredEntry& stored : content.entries) {
      lsns.push_back(stored.entry->lsn);
    }
    return lsns;
  }

  FakeClock clock_;
  DirtyShards dirty_{{}, clock_, [] {}};
  ShardCatalog catalog_{
      {.job_uid = 7, .parameters = {{.name = "w", .layer = "l", .shape = {4}}}, .optimisers = {{}}},
      dirty_};
  storage::MemoryStore store_;
};

TEST_F(BucketStoreTest, WhatIsStoredIsFoundUntilItIsUnmarked) {
  BucketStore buckets(PersistenceMode::kDelayed, catalog_, store_);
  EXPECT_TRUE(absl::IsNotFound(buckets.Load(0).status()));
  ASSERT_TRUE(buckets.StoreLoaded(0, Created(), true).ok());
  EXPECT_EQ(buckets.Load(0).value().generation, 1u);
  EXPECT_GT(buckets.CheckShard(0).value(), 4 * sizeof(float));
  ASSERT_TRUE(buckets.Unmark({0}).ok());
  EXPECT_TRUE(absl::IsNotFound(buckets.Load(0).status()));
}

TEST_F(BucketStoreTest, WithoutPersistenceNothingIsStored) {
  BucketStore buckets(PersistenceMode::kNone, catalog_, store_);
  ASSERT_TRUE(buckets.StoreLoaded(0, Created(), true).ok());
  EXPECT_TRUE(absl::IsNotFound(buckets.Load(0).status()));
}

TEST_F(BucketStoreTest, AnEntryThatComesAgainOverwritesAllBehindIt) {
  BucketStore buckets(PersistenceMode::kWal, catalog_, store_);
  ASSERT_TRUE(buckets.StoreLoaded(0, Created(), true).ok());
  ASSERT_TRUE(buckets
                  .WriteEntries(std::vector<PersistTask>{
                      Logging(1, "a"), Logging(2, "b"), Logging(3, "c"), Logging(2, "d")})
                  .ok());
  EXPECT_EQ(Logged(buckets), (std::vector<Lsn>{1, 2}));
}

TEST_F(BucketStoreTest, AFlushErasesTheLogOfWhatItWroteAndSaysHowFarThatWent) {
  BucketStore buckets(PersistenceMode::kWal, catalog_, store_);
  ASSERT_TRUE(buckets.StoreLoaded(0, Created(), true).ok());
  ASSERT_TRUE(
      buckets.WriteEntries(std::vector<PersistTask>{Logging(1, "a"), Logging(2, "b")}).ok());
  ASSERT_TRUE(buckets.EraseFlushed(std::vector<FlushedBucket>{{.origin = 4, .committed = 1}}).ok());
  EXPECT_EQ(Logged(buckets), (std::vector<Lsn>{2}));
  ASSERT_TRUE(buckets.EraseFlushed(std::vector<FlushedBucket>{{.origin = 4, .committed = 2}}).ok());
  const StoredContent stored = buckets.Load(0).value();
  EXPECT_TRUE(stored.entries.empty());
  EXPECT_EQ(stored.log_version, 4u);
  EXPECT_EQ(stored.log_lsn, 2u);
}

TEST_F(BucketStoreTest, ARecordThatIsWrittenLeavesALogOfRecordsAndNoOther) {
  const std::vector<CommittedRecord> records = {
      {.bucket = 0, .key = "key", .record = {.version = 1, .value = "a"}, .lsn = 1}};
  for (const PersistenceMode mode : {PersistenceMode::kDelayed, PersistenceMode::kWal}) {
    BucketStore buckets(mode, catalog_, store_);
    ASSERT_TRUE(buckets.StoreLoaded(0, Created(), true).ok());
    ASSERT_TRUE(buckets.WriteEntries(std::vector<PersistTask>{Logging(1, "a")}).ok());
    ASSERT_TRUE(buckets.WriteRecords(records).ok());
    EXPECT_EQ(Logged(buckets).size(), mode == PersistenceMode::kWal ? 1u : 0u);
    EXPECT_EQ(buckets.CheckRecords(0).value(), 1u);
  }
}

}  // namespace
}  // namespace adamant::parameter_server
