#include "tests/conformance/kv_store_suite.h"

#include <thread>
#include <utility>
#include <vector>

namespace adamant::conformance {
namespace {

using storage::Change;
using Entries = std::vector<std::pair<std::string, std::string>>;

Change Set(std::string key, std::string value) { return {std::move(key), std::move(value), false}; }

Change Erase(std::string key) { return {std::move(key), "", true}; }

Change EraseRange(std::string begin, std::string end) {
  return {std::move(begin), "", true, std::move(end)};
}

Entries ScanAll(const storage::KvStore& store, std::string_view prefix) {
  Entries entries;
  EXPECT_TRUE(store
                  .Scan(prefix,
                        [&](std::string_view key, std::string_view value) {
                          entries.emplace_back(key, value);
                          return true;
                        })
                  .ok());
  return entries;
}

TEST_P(KvStoreSuite, AbsentKeyIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(store().Get("none").status()));
}

TEST_P(KvStoreSuite, KeysAndValuesMayHoldAnyBytes) {
  const std::string key("\0\xff key", 6);
  const std::string value("\0\xff value", 8);
  ASSERT_TRUE(store().Write({Set(key, value), Set("empty", "")}).ok());
  EXPECT_EQ(store().Get(key).value(), value);
  EXPECT_EQ(store().Get("empty").value(), "");
}

TEST_P(KvStoreSuite, LastChangeOfABatchWins) {
  ASSERT_TRUE(store().Write({Set("a", "1"), Set("b", "1"), Set("a", "2"), Erase("b")}).ok());
  EXPECT_EQ(store().Get("a").value(), "2");
  EXPECT_TRUE(absl::IsNotFound(store().Get("b").status()));
}

TEST_P(KvStoreSuite, ErasingAnAbsentKeyIsNoError) {
  EXPECT_TRUE(store().Write({Erase("none")}).ok());
  EXPECT_TRUE(store().Write({}).ok());
}

TEST_P(KvStoreSuite, ErasingARangeKeepsItsEndAndWhatIsWrittenAfterwards) {
  ASSERT_TRUE(store().Write({Set("a", ""), Set("b", ""), Set("b/1", ""), Set("c", "")}).ok());
  ASSERT_TRUE(store().Flush().ok());
  ASSERT_TRUE(store().WriteLogged({Set("b/2", "")}).ok());
  ASSERT_TRUE(store().WriteLazily({Set("b/3", "")}).ok());
  ASSERT_TRUE(store().WriteLazily({EraseRange("b", "c"), Set("b/4", "")}).ok());
  const Entries left{{"a", ""}, {"b/4", ""}, {"c", ""}};
  EXPECT_EQ(ScanAll(store(), ""), left);
  EXPECT_TRUE(absl::IsNotFound(store().Get("b").status()));
  ASSERT_TRUE(store().Flush().ok());
  rig_->LosePower();
  EXPECT_EQ(ScanAll(store(), ""), left);
}

TEST_P(KvStoreSuite, ErasingAnEmptyRangeChangesNothing) {
  ASSERT_TRUE(store().Write({Set("a", "1"), Set("b", "1")}).ok());
  ASSERT_TRUE(store().Write({EraseRange("b", "a"), EraseRange("b", "b")}).ok());
  EXPECT_EQ(ScanAll(store(), "").size(), 2u);
}

TEST_P(KvStoreSuite, ScanVisitsThePrefixInKeyOrderUntilToldToStop) {
  ASSERT_TRUE(store().Write({Set("b/2", "y"), Set("a", "x"), Set("b/1", "z"), Set("c", "w")}).ok());
  ASSERT_TRUE(store().WriteLazily({Set("b/10", "v")}).ok());
  EXPECT_EQ(ScanAll(store(), "b/"), (Entries{{"b/1", "z"}, {"b/10", "v"}, {"b/2", "y"}}));
  EXPECT_EQ(ScanAll(store(), "").size(), 5u);
  EXPECT_TRUE(ScanAll(store(), "d").empty());
  int visited = 0;
  ASSERT_TRUE(store().Scan("b/", [&](auto, auto) { return ++visited < 2; }).ok());
  EXPECT_EQ(visited, 2);
}

TEST_P(KvStoreSuite, WritesSurviveALossOfPower) {
  ASSERT_TRUE(store().Write({Set("a", "1"), Set("b", "1")}).ok());
  ASSERT_TRUE(store().Write({Erase("b")}).ok());
  rig_->LosePower();
  EXPECT_EQ(store().Get("a").value(), "1");
  EXPECT_TRUE(absl::IsNotFound(store().Get("b").status()));
}

TEST_P(KvStoreSuite, LoggedWritesSurviveTheDeathOfTheProcess) {
  ASSERT_TRUE(store().WriteLogged({Set("a", "1"), Set("b", "1")}).ok());
  ASSERT_TRUE(store().WriteLogged({Erase("b")}).ok());
  EXPECT_EQ(ScanAll(store(), ""), (Entries{{"a", "1"}}));
  rig_->Crash();
  EXPECT_EQ(ScanAll(store(), ""), (Entries{{"a", "1"}}));
}

TEST_P(KvStoreSuite, LoggedWritesDoNotSurviveALossOfPower) {
  ASSERT_TRUE(store().Write({Set("a", "1")}).ok());
  ASSERT_TRUE(store().WriteLogged({Set("a", "2"), Set("b", "2")}).ok());
  rig_->LosePower();
  EXPECT_EQ(ScanAll(store(), ""), (Entries{{"a", "1"}}));
}

TEST_P(KvStoreSuite, LoggedWritesAreDurableAfterAWriteOrAFlush) {
  ASSERT_TRUE(store().WriteLogged({Set("a", "1")}).ok());
  ASSERT_TRUE(store().Write({Set("b", "1")}).ok());
  ASSERT_TRUE(store().WriteLogged({Set("c", "1")}).ok());
  ASSERT_TRUE(store().Flush().ok());
  ASSERT_TRUE(store().WriteLogged({Set("d", "1")}).ok());
  rig_->LosePower();
  EXPECT_EQ(ScanAll(store(), ""), (Entries{{"a", "1"}, {"b", "1"}, {"c", "1"}}));
}

TEST_P(KvStoreSuite, LazyWritesAreVisibleAtOnceAndDurableAfterFlush) {
  ASSERT_TRUE(store().WriteLazily({Set("a", std::string(1 << 20, 'a'))}).ok());
  EXPECT_EQ(store().Get("a").value().size(), std::size_t{1} << 20);
  ASSERT_TRUE(store().Flush().ok());
  ASSERT_TRUE(store().WriteLazily({Set("a", "lost")}).ok());
  rig_->LosePower();
  EXPECT_EQ(store().Get("a").value().size(), std::size_t{1} << 20);
}

TEST_P(KvStoreSuite, CrashLosesLazyWritesButNoWriteBetweenThem) {
  ASSERT_TRUE(store().WriteLazily({Set("lazy", "1")}).ok());
  ASSERT_TRUE(store().Write({Set("record", "1")}).ok());
  ASSERT_TRUE(store().WriteLazily({Set("lazy", "2"), Set("record", "2")}).ok());
  rig_->Crash();
  EXPECT_TRUE(absl::IsNotFound(store().Get("lazy").status()));
  EXPECT_EQ(store().Get("record").value(), "1");
}

TEST_P(KvStoreSuite, WriteAfterALazyWriteOfTheSameKeyStays) {
  ASSERT_TRUE(store().WriteLazily({Set("key", "older")}).ok());
  ASSERT_TRUE(store().Write({Set("key", "newer")}).ok());
  EXPECT_EQ(store().Get("key").value(), "newer");
  ASSERT_TRUE(store().Flush().ok());
  rig_->Crash();
  EXPECT_EQ(store().Get("key").value(), "newer");
}

TEST_P(KvStoreSuite, OlderFlushedValueDoesNotHideALaterLoggedOne) {
  ASSERT_TRUE(store().WriteLazily({Set("key", "lazy")}).ok());
  ASSERT_TRUE(store().WriteLogged({Set("key", "logged")}).ok());
  rig_->Crash();
  EXPECT_EQ(store().Get("key").value(), "logged");
  ASSERT_TRUE(store().WriteLazily({Set("key", "flushed")}).ok());
  ASSERT_TRUE(store().Flush().ok());
  rig_->Crash();
  EXPECT_EQ(store().Get("key").value(), "flushed");
}

TEST_P(KvStoreSuite, FlushOfNothingSucceeds) {
  EXPECT_TRUE(store().Flush().ok());
  EXPECT_TRUE(store().Flush().ok());
}

TEST_P(KvStoreSuite, FullDiskRefusesWritesServesReadsAndRecovers) {
  ASSERT_TRUE(store().Write({Set("a", "1")}).ok());
  ASSERT_TRUE(store().WriteLazily({Set("lazy", "1")}).ok());
  rig_->SetFull(true);
  EXPECT_TRUE(absl::IsResourceExhausted(store().Write({Set("b", "1")})));
  EXPECT_TRUE(absl::IsResourceExhausted(store().Write({Set("b", "2")})));
  EXPECT_TRUE(absl::IsResourceExhausted(store().WriteLogged({Set("b", "2")})));
  EXPECT_TRUE(absl::IsResourceExhausted(store().Flush()));
  EXPECT_EQ(store().Get("a").value(), "1");
  EXPECT_EQ(store().Get("lazy").value(), "1");
  rig_->SetFull(false);
  absl::Status status = store().Write({Set("b", "3")});
  EXPECT_TRUE(status.ok()) << status;
  status = store().Flush();
  EXPECT_TRUE(status.ok()) << status;
  rig_->Crash();
  EXPECT_EQ(store().Get("a").value(), "1");
  EXPECT_EQ(store().Get("b").value(), "3");
  EXPECT_EQ(store().Get("lazy").value(), "1");
}

TEST_P(KvStoreSuite, FailedSyncIsDataLoss) {
  ASSERT_TRUE(store().Write({Set("a", "1")}).ok());
  rig_->FailNextSync();
  EXPECT_TRUE(absl::IsDataLoss(store().Write({Set("b", "1")})));
  rig_->Crash();
  EXPECT_EQ(store().Get("a").value(), "1");
}

TEST_P(KvStoreSuite, DamagedValueIsDataLoss) {
  ASSERT_TRUE(store().WriteLazily({Set("a", std::string(100'000, 'a'))}).ok());
  ASSERT_TRUE(store().WriteLazily({Set("b", std::string(100'000, 'b'))}).ok());
  ASSERT_TRUE(store().Flush().ok());
  rig_->Corrupt("a");
  EXPECT_TRUE(absl::IsDataLoss(store().Get("a").status())) << store().Get("a").status();
  EXPECT_TRUE(absl::IsDataLoss(store().Scan("", [](auto, auto) { return true; })));
  EXPECT_EQ(store().Get("b").value(), std::string(100'000, 'b'));
}

TEST_P(KvStoreSuite, ThreadsMayWriteAndReadAtOnce) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string key = std::to_string(t) + "/" + std::to_string(i);
        ASSERT_TRUE(
            (i % 10 == 0 ? store().Write({Set(key, key)}) : store().WriteLazily({Set(key, key)}))
                .ok());
        ASSERT_EQ(store().Get(key).value(), key);
      }
      ASSERT_TRUE(store().Flush().ok());
    });
  }
  threads.clear();
  EXPECT_EQ(ScanAll(store(), "").size(), 200u);
}

}  // namespace
}  // namespace adamant::conformance
