#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/local/kv_state_store.h"
#include "services/common/storage/memory_store.h"

namespace adamant::local {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(KvStateStoreTest, AnEmptyStoreHasVersionZero) {
  storage::MemoryStore memory;
  const auto loaded = KvStateStore(memory).Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->version, 0u);
  EXPECT_THAT(loaded->entries, IsEmpty());
}

TEST(KvStateStoreTest, EachSwapRaisesTheVersionAndKeepsOtherEntries) {
  storage::MemoryStore memory;
  KvStateStore store(memory);
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
  KvStateStore mine(memory);
  KvStateStore other(memory);
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
  KvStateStore store(memory);
  EXPECT_EQ(store.Load().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(store.CompareAndSwap(7, {}).code(), absl::StatusCode::kDataLoss);
}

TEST(KvStateStoreTest, WhatCannotBeStoredChangesNothing) {
  storage::MemoryStore memory;
  KvStateStore store(memory);
  ASSERT_TRUE(store.CompareAndSwap(0, {{"state", "one"}}).ok());
  memory.SetFull(true);
  EXPECT_EQ(store.CompareAndSwap(1, {{"state", "two"}}).code(),
            absl::StatusCode::kResourceExhausted);
  memory.SetFull(false);
  EXPECT_TRUE(store.CompareAndSwap(1, {{"state", "two"}}).ok());
}

}  // namespace
}  // namespace adamant::local
