#include "tests/conformance/kv_store_suite.h"

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/storage/memory_store.h"

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

// The same random calls on the store and on a model.
class RandomHistory {
 public:
  RandomHistory(std::uint64_t seed, bool logs_lazy_writes)
      : rng_(seed), logs_lazy_writes_(logs_lazy_writes) {}

  void Run(KvStoreRig& rig) {
    for (int step = 0; step < 150 && !testing::Test::HasFailure(); ++step) {
      switch (rng_.Below(10)) {
        case 0:
          ASSERT_TRUE(rig.store().Flush().ok());
          ASSERT_TRUE(model_.Flush().ok());
          break;
        case 1:
          if (rng_.Below(4) == 0) {
            Die(rig);
          }
          break;
        default:
          Write(rig.store());
      }
      ASSERT_EQ(ScanAll(rig.store(), ""), ScanAll(model_, "")) << "after step " << step;
      const std::string key = Key();
      ASSERT_EQ(rig.store().Get(key).value_or("none"), model_.Get(key).value_or("none")) << key;
    }
  }

 private:
  void Die(KvStoreRig& rig) {
    if (rng_.Below(2) == 0) {
      rig.Crash();
      model_.Crash();
    } else {
      rig.LosePower();
      model_.LosePower();
    }
  }

  void Write(storage::KvStore& store) {
    using WriteMember = absl::Status (storage::KvStore::*)(const std::vector<Change>&);
    const WriteMember member =
        std::array<WriteMember, 4>{&storage::KvStore::Write,
                                   &storage::KvStore::WriteLogged,
                                   &storage::KvStore::WriteLazily,
                                   &storage::KvStore::WriteLazily}[rng_.Below(4)];
    std::vector<Change> changes;
    for (std::uint64_t left = rng_.Below(4); left > 0; --left) {
      changes.push_back(RandomChange());
    }
    ASSERT_TRUE((store.*member)(changes).ok());
    const bool logged = member == &storage::KvStore::WriteLazily && logs_lazy_writes_;
    ASSERT_TRUE((logged ? model_.WriteLogged(changes) : (model_.*member)(changes)).ok());
  }

  Change RandomChange() {
    switch (rng_.Below(8)) {
      case 0:
        return Erase(Key());
      case 1:
        return EraseRange(Key(), Key());
      case 2:
      case 3:
        return Set(Key(), RandomValue(100'000));
      default:
        return Set(Key(), RandomValue(10));
    }
  }

  std::string Key() { return std::string(1, static_cast<char>('a' + rng_.Below(12))); }

  std::string RandomValue(std::size_t bytes) {
    return std::to_string(rng_()) + std::string(bytes, 'v');
  }

  Rng rng_;
  const bool logs_lazy_writes_;
  storage::MemoryStore model_;
};

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

TEST_P(KvStoreSuite, ErasingARangeTakesWhatTheSameBatchWroteBefore) {
  ASSERT_TRUE(store().Write({Set("b/1", "1")}).ok());
  ASSERT_TRUE(
      store()
          .Write({Set("a", ""), Set("b/2", ""), Set("c", ""), EraseRange("b", "c"), Set("b/3", "")})
          .ok());
  EXPECT_EQ(ScanAll(store(), ""), (Entries{{"a", ""}, {"b/3", ""}, {"c", ""}}));
}

TEST_P(KvStoreSuite, ErasingARangeOfManyBytes) {
  for (int i = 10; i < 20; ++i) {
    ASSERT_TRUE(
        store().WriteLogged({Set("b/" + std::to_string(i), std::string(100000, 'x'))}).ok());
  }
  ASSERT_TRUE(store().Write({Set("c", "")}).ok());
  ASSERT_TRUE(store().Write({Set("b/20", ""), EraseRange("b", "c"), Set("b/21", "")}).ok());
  EXPECT_EQ(ScanAll(store(), ""), (Entries{{"b/21", ""}, {"c", ""}}));
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

TEST_P(KvStoreSuite, CrashMayLoseTheLastLazyWritesButNoWriteBetweenThem) {
  ASSERT_TRUE(store().WriteLazily({Set("lazy", "1")}).ok());
  ASSERT_TRUE(store().Write({Set("record", "1")}).ok());
  ASSERT_TRUE(store().WriteLazily({Set("lazy", "2"), Set("record", "2")}).ok());
  rig_->Crash();
  const Entries left = ScanAll(store(), "");
  EXPECT_TRUE(left == (Entries{{"record", "1"}}) ||
              left == (Entries{{"lazy", "1"}, {"record", "1"}}) ||
              left == (Entries{{"lazy", "2"}, {"record", "2"}}))
      << testing::PrintToString(left);
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

TEST_P(KvStoreSuite, SmallAndLargeValuesReplaceEachOther) {
  const std::string large(300'000, 'l');
  ASSERT_TRUE(store().Write({Set("a", "small"), Set("b", "small"), Set("c", "small")}).ok());
  ASSERT_TRUE(store().WriteLazily({Set("a", large), Set("b", large), Set("d", large)}).ok());
  ASSERT_TRUE(store().Flush().ok());
  ASSERT_TRUE(store().WriteLogged({Set("b", "small"), Erase("d")}).ok());
  ASSERT_TRUE(store().WriteLazily({Set("c", large), Set("e", large), Erase("a")}).ok());
  const Entries left{{"b", "small"}, {"c", large}, {"e", large}};
  EXPECT_EQ(ScanAll(store(), ""), left);
  ASSERT_TRUE(store().Flush().ok());
  rig_->LosePower();
  EXPECT_EQ(ScanAll(store(), ""), left);
}

// What a random history leaves, with crashes in between, is what it leaves in MemoryStore.
TEST_P(KvStoreSuite, RandomCallsLeaveWhatTheModelSays) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    rig_ = GetParam().make();
    RandomHistory(seed, rig_->LogsLazyWrites()).Run(*rig_);
  }
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
