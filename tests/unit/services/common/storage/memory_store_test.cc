#include "services/common/storage/memory_store.h"

#include <gtest/gtest.h>

#include "tests/conformance/kv_store_suite.h"

namespace adamant::conformance {
namespace {

using storage::MemoryStore;

class MemoryRig final : public KvStoreRig {
 public:
  storage::KvStore& store() override { return store_; }
  void Crash() override { store_.Crash(); }
  void LosePower() override { store_.LosePower(); }
  void SetFull(bool full) override { store_.SetFull(full); }
  void FailNextSync() override { store_.FailNextSync(); }
  void Corrupt(const std::string& key) override { store_.Corrupt(key); }

 private:
  MemoryStore store_;
};

INSTANTIATE_TEST_SUITE_P(Memory,
                         KvStoreSuite,
                         testing::Values(KvStoreRigFactory{
                             "memory", [] { return std::make_unique<MemoryRig>(); }}));

TEST(MemoryStoreTest, OldestLazyWritesMaySurviveACrash) {
  MemoryStore store;
  for (const std::string key : {"a", "b", "c"}) {
    ASSERT_TRUE(store.WriteLazily({{key, "1"}}).ok());
  }
  EXPECT_EQ(store.unflushed(), 3u);
  store.Crash(2);
  EXPECT_EQ(store.unflushed(), 2u);
  EXPECT_TRUE(store.Get("a").ok());
  EXPECT_TRUE(store.Get("b").ok());
  EXPECT_TRUE(absl::IsNotFound(store.Get("c").status()));
}

TEST(MemoryStoreTest, SurvivingLazyWriteDoesNotHideALaterWrite) {
  MemoryStore store;
  ASSERT_TRUE(store.WriteLazily({{"key", "older"}}).ok());
  ASSERT_TRUE(store.Write({{"key", "newer"}}).ok());
  store.Crash(1);
  EXPECT_EQ(store.Get("key").value(), "newer");
}

TEST(MemoryStoreTest, OldestOfEachKindMaySurviveALossOfPower) {
  MemoryStore store;
  for (const std::string key : {"a", "b"}) {
    ASSERT_TRUE(store.WriteLogged({{key, "logged"}}).ok());
    ASSERT_TRUE(store.WriteLazily({{key, "lazy"}}).ok());
  }
  store.LosePower(1);
  EXPECT_EQ(store.Get("a").value(), "lazy");
  EXPECT_TRUE(absl::IsNotFound(store.Get("b").status()));
}

TEST(MemoryStoreTest, WritingAgainMendsACorruptValue) {
  MemoryStore store;
  ASSERT_TRUE(store.Write({{"key", "1"}}).ok());
  store.Corrupt("key");
  ASSERT_TRUE(store.Write({{"key", "2"}}).ok());
  EXPECT_EQ(store.Get("key").value(), "2");
}

TEST(MemoryStoreTest, WhatIsDurableIsWhatALossOfPowerLeaves) {
  MemoryStore store;
  ASSERT_TRUE(store.Write({{"a", "1"}, {"b", "1"}}).ok());
  ASSERT_TRUE(store.WriteLazily({{"a", "2"}}).ok());
  ASSERT_TRUE(store.WriteLogged({{"c", "1"}}).ok());
  EXPECT_EQ(*store.GetDurable("a"), "1");
  EXPECT_TRUE(absl::IsNotFound(store.GetDurable("c").status()));
  ASSERT_TRUE(store.Write({{.key = "b", .value = "", .erase = true, .end = "c"}}).ok());
  EXPECT_TRUE(absl::IsNotFound(store.GetDurable("b").status()));
  EXPECT_EQ(*store.GetDurable("c"), "1");
  store.LosePower();
  EXPECT_EQ(*store.Get("a"), "1");
  EXPECT_TRUE(absl::IsNotFound(store.Get("b").status()));
  EXPECT_EQ(*store.Get("c"), "1");
}

TEST(MemoryStoreTest, WhatSurvivedTheProcessIsNotDurableYet) {
  MemoryStore store;
  ASSERT_TRUE(store.WriteLogged({{"logged", "1"}}).ok());
  ASSERT_TRUE(store.WriteLazily({{"lazy", "1"}}).ok());
  store.Crash(1);
  EXPECT_TRUE(store.Get("logged").ok());
  EXPECT_TRUE(store.Get("lazy").ok());
  store.LosePower();
  EXPECT_TRUE(absl::IsNotFound(store.Get("logged").status()));
  EXPECT_TRUE(absl::IsNotFound(store.Get("lazy").status()));
}

TEST(MemoryStoreTest, WhatALyingOneWritesSurvivesTheProcessOnly) {
  MemoryStore store;
  ASSERT_TRUE(store.Write({{"a", "1"}}).ok());
  store.SetLying(true);
  ASSERT_TRUE(store.WriteLazily({{"a", "2"}}).ok());
  ASSERT_TRUE(store.Flush().ok());
  ASSERT_TRUE(store.Write({{"b", "1"}}).ok());
  store.Crash();
  EXPECT_EQ(*store.Get("a"), "2");
  EXPECT_EQ(*store.Get("b"), "1");
  ASSERT_TRUE(store.Write({{"b", "2"}}).ok());
  EXPECT_TRUE(absl::IsNotFound(store.GetDurable("b").status()));
  store.SetLying(false);
  ASSERT_TRUE(store.Flush().ok());
  EXPECT_EQ(*store.GetDurable("b"), "2");
}

}  // namespace
}  // namespace adamant::conformance
