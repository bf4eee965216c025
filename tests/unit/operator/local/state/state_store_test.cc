#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/local/state/kv_state_store.h"
#include "services/common/base/status_macros.h"
#include "services/common/storage/memory_store.h"

namespace adamant::local {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(KvStateStoreTest, AnEmptyStoreHasVersionZero) {
  storage::MemoryStore memory;
  const auto loaded = KvStateStore(memory, 1).Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->version, 0u);
  EXPECT_THAT(loaded->entries, IsEmpty());
}

TEST(KvStateStoreTest, EachSwapRaisesTheVersionAndKeepsOtherEntries) {
  storage::MemoryStore memory;
  KvStateStore store(memory, 1);
  ASSERT_TRUE(store.CompareAndSwap(0, {{"state", "one"}, {"epoch/1", "row"}}).ok());
  ASSERT_TRUE(store.CompareAndSwap(1, {{"state", "two"}}).ok());
  memory.LosePower();
  const auto loaded = store.Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->version, 2u);
  EXPECT_THAT(loaded->entries, ElementsAre(Pair("epoch/1", "row"), Pair("state", "two")));
}

TEST(KvStateStoreTest, AControllerWhoseStateAnotherHasChangedIsRefused) {
  storage::MemoryStore memory;
  KvStateStore mine(memory, 1);
  KvStateStore other(memory, 2);
  ASSERT_TRUE(mine.CompareAndSwap(0, {{"state", "mine"}}).ok());
  ASSERT_TRUE(other.CompareAndSwap(1, {{"state", "other"}}).ok());
  const absl::Status refused = mine.CompareAndSwap(1, {{"state", "mine again"}});
  EXPECT_EQ(refused.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("another controller has taken over"));
  EXPECT_EQ(mine.Load()->entries.at("state"), "other");
}

TEST(KvStateStoreTest, ADamagedVersionIsNotTakenForAnother) {
  storage::MemoryStore memory;
  ASSERT_TRUE(memory.Write({{.key = "version", .value = "7x"}}).ok());
  KvStateStore store(memory, 1);
  EXPECT_EQ(store.Load().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(store.CompareAndSwap(7, {}).code(), absl::StatusCode::kDataLoss);
}

TEST(KvStateStoreTest, WhatCannotBeStoredChangesNothing) {
  storage::MemoryStore memory;
  KvStateStore store(memory, 1);
  ASSERT_TRUE(store.CompareAndSwap(0, {{"state", "one"}}).ok());
  memory.SetFull(true);
  EXPECT_EQ(store.CompareAndSwap(1, {{"state", "two"}}).code(),
            absl::StatusCode::kResourceExhausted);
  memory.SetFull(false);
  EXPECT_TRUE(store.CompareAndSwap(1, {{"state", "two"}}).ok());
}

// Says that a write failed although it was stored, as when a log is written and its sync fails.
class DeceivingStore final : public storage::KvStore {
 public:
  absl::StatusOr<std::string> Get(std::string_view key) const override { return memory.Get(key); }
  absl::Status Write(const std::vector<storage::Change>& changes) override {
    ADAMANT_RETURN_IF_ERROR(memory.Write(changes));
    return deceive ? absl::UnavailableError("cannot sync") : absl::OkStatus();
  }
  absl::Status WriteLogged(const std::vector<storage::Change>& changes) override {
    return memory.WriteLogged(changes);
  }
  absl::Status WriteLazily(const std::vector<storage::Change>& changes) override {
    return memory.WriteLazily(changes);
  }
  absl::Status Flush() override { return memory.Flush(); }
  absl::Status Scan(
      std::string_view prefix,
      const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    return memory.Scan(prefix, visit);
  }

  storage::MemoryStore memory;
  bool deceive = false;
};

TEST(KvStateStoreTest, AFailedWriteThatWasStoredAfterAllIsNotTakenForAnotherController) {
  DeceivingStore memory;
  KvStateStore store(memory, 1);
  ASSERT_TRUE(store.CompareAndSwap(0, {{"state", "one"}}).ok());
  memory.deceive = true;
  EXPECT_EQ(store.CompareAndSwap(1, {{"state", "two"}}).code(), absl::StatusCode::kUnavailable);
  memory.deceive = false;
  EXPECT_TRUE(store.CompareAndSwap(1, {{"state", "failed"}}).ok());
  const auto loaded = store.Load();
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->version, 2u);
  EXPECT_EQ(loaded->entries.at("state"), "failed");
}

TEST(KvStateStoreTest, AfterAFailedWriteAnotherControllerIsStillRecognised) {
  storage::MemoryStore memory;
  KvStateStore mine(memory, 1);
  KvStateStore other(memory, 2);
  ASSERT_TRUE(mine.CompareAndSwap(0, {{"state", "one"}}).ok());
  memory.SetFull(true);
  EXPECT_FALSE(mine.CompareAndSwap(1, {{"state", "two"}}).ok());
  memory.SetFull(false);
  ASSERT_TRUE(other.CompareAndSwap(1, {{"state", "other"}}).ok());
  EXPECT_EQ(mine.CompareAndSwap(1, {{"state", "two"}}).code(), absl::StatusCode::kAborted);
}

TEST(KvStateStoreTest, WhatCouldNotBeStoredIsStoredWithWhatFollows) {
  storage::MemoryStore memory;
  KvStateStore store(memory, 1);
  memory.SetFull(true);
  EXPECT_FALSE(store.CompareAndSwap(0, {{"state", "one"}, {"epoch/1", "row"}}).ok());
  memory.SetFull(false);
  EXPECT_TRUE(store.CompareAndSwap(0, {{"state", "failed"}}).ok());
  EXPECT_THAT(store.Load()->entries, ElementsAre(Pair("epoch/1", "row"), Pair("state", "failed")));
}

}  // namespace
}  // namespace adamant::local
