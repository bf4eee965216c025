#include "services/parameter_server/core/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/common/storage/memory_store.h"

namespace adamant::parameter_server {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kJob = 7;

class RecordsTest : public ::testing::Test {
 protected:
  /// The records as another process finds them.
  absl::StatusOr<std::string> Reloaded(std::string_view key, std::uint64_t job = kJob) {
    Records reloaded(job, 1, store_);
    const absl::Status loaded = reloaded.Load(0);
    if (!loaded.ok()) {
      return loaded;
    }
    return reloaded.Get(key).value;
  }

  storage::MemoryStore store_;
  Records records_{kJob, 1, store_};
};

TEST_F(RecordsTest, CompareAndSwapStoresOnlyOverTheExpectedVersion) {
  EXPECT_EQ(records_.Get("ledger/0").version, 0u);
  auto first = records_.Put("ledger/0", 0, "a");
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->stored);
  EXPECT_EQ(first->version, 1u);

  auto conflict = records_.Put("ledger/0", 0, "b");
  ASSERT_TRUE(conflict.ok());
  EXPECT_FALSE(conflict->stored);
  EXPECT_EQ(conflict->version, 1u);
  EXPECT_EQ(records_.Get("ledger/0").value, "a");

  auto second = records_.Put("ledger/0", 1, "c");
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->stored);
  EXPECT_EQ(records_.Get("ledger/0").version, 2u);
}

TEST_F(RecordsTest, AnAcknowledgedRecordSurvivesACrash) {
  ASSERT_TRUE(records_.Put("ledger/0", 0, std::string("a\0b", 3)).ok());
  store_.Crash();
  EXPECT_EQ(*Reloaded("ledger/0"), std::string("a\0b", 3));
}

TEST_F(RecordsTest, AFullDiskChangesNothing) {
  ASSERT_TRUE(records_.Put("ledger/0", 0, "a").ok());
  store_.SetFull(true);
  EXPECT_EQ(records_.Put("ledger/0", 1, "b").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(records_.Get("ledger/0").version, 1u);
  store_.SetFull(false);
  EXPECT_TRUE(records_.Put("ledger/0", 1, "b")->stored);
}

TEST_F(RecordsTest, SizesAreChecked) {
  EXPECT_FALSE(records_.Put("", 0, "a").ok());
  EXPECT_FALSE(records_.Put(std::string(257, 'k'), 0, "a").ok());
  EXPECT_FALSE(records_.Put("k", 0, std::string((1 << 20) + 1, 'v')).ok());
  EXPECT_TRUE(records_.Put(std::string(256, 'k'), 0, std::string(1 << 20, 'v')).ok());
}

TEST_F(RecordsTest, CorruptForeignAndUnknownRecordsAreRefused) {
  ASSERT_TRUE(records_.Put("k", 0, "value").ok());
  EXPECT_EQ(Reloaded("k", kJob + 1).status().code(), absl::StatusCode::kFailedPrecondition);

  std::string stored = *store_.Get("record/00000000/k");
  std::string corrupt = stored;
  corrupt.back() = 'X';
  ASSERT_TRUE(store_.Write({{"record/00000000/k", corrupt}}).ok());
  EXPECT_EQ(Reloaded("k").status().code(), absl::StatusCode::kDataLoss);

  stored[0] = 2;
  ASSERT_TRUE(store_.Write({{"record/00000000/k", stored}}).ok());
  const absl::Status unknown = Reloaded("k").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("version 2"));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("version 1"));
}

TEST_F(RecordsTest, EachBucketLoadsItsOwn) {
  Records many(kJob, 4, store_);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(many.Put("key" + std::to_string(i), 0, "v").ok());
  }
  for (BucketId bucket = 0; bucket < 4; ++bucket) {
    Records one(kJob, 4, store_);
    ASSERT_TRUE(one.Load(bucket).ok());
    for (int i = 0; i < 20; ++i) {
      const std::string key = "key" + std::to_string(i);
      EXPECT_EQ(one.Get(key).version, BucketOfRecord(key, 4) == bucket ? 1u : 0u);
    }
  }
}

}  // namespace
}  // namespace adamant::parameter_server
