#include "services/common/checkpoint/snapshot_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "services/common/checkpoint/snapshot_format.h"
#include "services/common/storage/memory_store.h"

namespace adamant::checkpoint {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr std::uint64_t kJobUid = 7;
constexpr ShardIdentity kTwoValues{.job_uid = kJobUid, .shard = 3, .values = 2};

// A store whose copies and marks have been written as the format says.
class SnapshotStoreTest : public testing::Test {
 protected:
  void Put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(store_.Write({{.key = key, .value = value}}).ok());
  }

  void Mark(std::uint64_t snapshot, BucketId bucket) {
    Put(MarkKey(snapshot, bucket),
        EncodeMark({.bucket = bucket,
                    .configuration_version = 4,
                    .generation = 5,
                    .updates = 6,
                    .checksum = 0xab}));
  }

  void Copy(std::uint64_t snapshot, BucketId bucket) {
    std::string record = EncodeShard(kTwoValues, {.version = 9, .values = {1, 2}, .state = {}});
    SealShard(record);
    Put(CopyPrefix(snapshot, bucket) + LiveShardKey(kTwoValues.shard), record);
  }

  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    EXPECT_TRUE(store_
                    .Scan("",
                          [&](std::string_view key, std::string_view) {
                            keys.emplace_back(key);
                            return true;
                          })
                    .ok());
    return keys;
  }

  storage::MemoryStore store_;
  SnapshotStore snapshots_{kJobUid, store_};
};

TEST_F(SnapshotStoreTest, WhatLiesInAStoreKeepsItsKeysAndItsText) {
  EXPECT_EQ(MarkKey(0x1f, 10), "snapshots/000000000000001f/0000000a");
  EXPECT_EQ(CopyPrefix(0x1f, 10), "snapshot/000000000000001f/0000000a/");
  Mark(1, 0);
  EXPECT_EQ(store_.Get(MarkKey(1, 0)).value(), "1 4 5 6 00000000000000ab");
}

TEST_F(SnapshotStoreTest, ACopyIsThereOnceItIsMarked) {
  Copy(1, 2);
  EXPECT_FALSE(snapshots_.ReadShard(1, 2, kTwoValues)->has_value());
  EXPECT_TRUE(absl::IsNotFound(snapshots_.LoadShard(1, 2, kTwoValues).status()));
  Mark(1, 2);
  const auto stored = snapshots_.ReadShard(1, 2, kTwoValues);
  ASSERT_TRUE(stored.ok() && stored->has_value()) << stored.status();
  EXPECT_THAT((*stored)->record.values, ElementsAre(1, 2));
  EXPECT_EQ(snapshots_.LoadShard(1, 2, kTwoValues)->version, 9u);
  EXPECT_THAT(*snapshots_.All(), ElementsAre(Pair(1, BucketId(2))));
  const auto about = snapshots_.Find(1, 2);
  ASSERT_TRUE(about.ok() && about->has_value()) << about.status();
  EXPECT_EQ((*about)->generation, 5u);
  EXPECT_EQ((*about)->checksum, 0xabu);
}

TEST_F(SnapshotStoreTest, AShardThatIsNotInAMarkedCopyIsNone) {
  Mark(1, 2);
  EXPECT_FALSE(snapshots_.ReadShard(1, 2, kTwoValues)->has_value());
}

TEST_F(SnapshotStoreTest, AMarkOfAnotherFormatIsRefused) {
  Put(MarkKey(1, 2), "2 anything");
  EXPECT_TRUE(absl::IsFailedPrecondition(snapshots_.Find(1, 2).status()));
}

TEST_F(SnapshotStoreTest, RecordsAreThoseOfTheCopy) {
  const storage::Change live = StoreRecord(kJobUid, 2, "ledger", {.version = 3, .value = "x"});
  Put(CopyPrefix(1, 2) + live.key, live.value);
  Mark(1, 2);
  EXPECT_EQ(snapshots_.LoadRecords(1, 2)->at("ledger").version, 3u);
}

TEST_F(SnapshotStoreTest, OnlyWhatIsToBeKeptStays) {
  for (const std::uint64_t snapshot : {1, 2, 3}) {
    Copy(snapshot, 0);
    Mark(snapshot, 0);
  }
  Put(LiveShardKey(3), "live");
  ASSERT_TRUE(snapshots_.KeepOnly({2}).ok());
  EXPECT_THAT(Keys(), ElementsAre(CopyPrefix(2, 0) + LiveShardKey(3), MarkKey(2, 0)));
}

}  // namespace
}  // namespace adamant::checkpoint
