#include "services/common/checkpoint/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/common/storage/memory_store.h"

namespace adamant::checkpoint {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kJob = 7;

class RecordsTest : public ::testing::Test {
 protected:
  void Store(BucketId bucket, std::string_view key, std::uint64_t version, std::string_view value) {
    ASSERT_TRUE(store_.Write({StoreRecord(kJob, bucket, key, {version, std::string(value)})}).ok());
  }

  storage::MemoryStore store_;
};

TEST_F(RecordsTest, WhatIsStoredIsLoaded) {
  Store(0, "ledger/0", 3, std::string_view("a\0b", 3));
  const auto loaded = LoadRecords(kJob, 0, store_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->at("ledger/0").version, 3u);
  EXPECT_EQ(loaded->at("ledger/0").value, std::string("a\0b", 3));
}

TEST_F(RecordsTest, EachBucketHasItsOwn) {
  Store(1, "a", 1, "x");
  Store(2, "b", 1, "y");
  EXPECT_EQ(LoadRecords(kJob, 1, store_)->size(), 1u);
  ASSERT_TRUE(store_.Write({EraseRecords(1)}).ok());
  EXPECT_TRUE(LoadRecords(kJob, 1, store_)->empty());
  EXPECT_EQ(LoadRecords(kJob, 2, store_)->size(), 1u);
}

TEST_F(RecordsTest, CorruptForeignAndUnknownRecordsAreRefused) {
  Store(0, "k", 1, "value");
  EXPECT_EQ(LoadRecords(kJob + 1, 0, store_).status().code(),
            absl::StatusCode::kFailedPrecondition);

  std::string stored = *store_.Get("record/00000000/k");
  std::string corrupt = stored;
  corrupt.back() = 'X';
  ASSERT_TRUE(store_.Write({{"record/00000000/k", corrupt}}).ok());
  EXPECT_EQ(LoadRecords(kJob, 0, store_).status().code(), absl::StatusCode::kDataLoss);

  stored[0] = 2;
  ASSERT_TRUE(store_.Write({{"record/00000000/k", stored}}).ok());
  const absl::Status unknown = LoadRecords(kJob, 0, store_).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("version 2"));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("version 1"));
}

}  // namespace
}  // namespace adamant::checkpoint
