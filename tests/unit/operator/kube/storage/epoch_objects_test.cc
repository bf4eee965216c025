#include "operator/kube/storage/epoch_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/operator/kube/storage/state_store_rig.h"

namespace adamant::kube {
namespace {

using controller::EpochResult;
using controller::JobState;
using testing::HasSubstr;
using testing::SizeIs;

const ObjectKey kFirst{"team", "mnist-epochs-0"};

/// With as many numbers as a result can have.
std::string LargestRow(DataEpoch epoch, std::uint64_t attempt = 1) {
  EpochResult row{.epoch = epoch, .attempt = attempt};
  row.update_staleness_counts.assign(controller::kStalenessBins, UINT64_MAX);
  row.batches_of_others.assign(controller::kStalenessBins, UINT64_MAX);
  return Encode(row);
}

class EpochObjectsTest : public StateStoreRig {
 protected:
  /// Ends an epoch: its result, and the state in which the next one is open.
  static Entries Ended(DataEpoch epoch, const std::string& row, std::uint64_t term = 1) {
    JobState state = StateWith(term, 1);
    state.epoch = epoch + 1;
    return {Row(epoch, row), {controller::kStateKey, Encode(state)}};
  }

  /// Stores results "1", "2", ….
  static void Store(KubeStateStore& store, std::uint64_t first, std::uint64_t last) {
    for (DataEpoch epoch = first; epoch <= last; ++epoch) {
      ASSERT_TRUE(store.CompareAndSwap(epoch - 1, Ended(epoch, std::to_string(epoch))).ok())
          << epoch;
    }
  }

  static Rows RowsUpTo(std::uint64_t last) {
    Rows rows;
    for (DataEpoch epoch = 1; epoch <= last; ++epoch) {
      rows[epoch] = std::to_string(epoch);
    }
    return rows;
  }

  static std::string KeyOfRow(DataEpoch epoch, std::uint64_t attempt) {
    const std::string of_attempt = attempt > 1 ? "." + std::to_string(attempt) : "";
    return controller::kResultPrefix + std::to_string(epoch) + of_attempt;
  }

  /// Ends an epoch of an attempt.
  static Entries Ended(DataEpoch epoch, std::uint64_t attempt, const std::string& row) {
    JobState state = StateWith(1, 1);
    state.epoch = epoch + 1;
    return {{KeyOfRow(epoch, attempt), row}, {controller::kStateKey, Encode(state)}};
  }

  /// "3.2=value": the entries of the first object, by epoch and attempt.
  std::string FirstObject() {
    const Json object = NewClient().Get(kConfigMaps, kFirst).value_or(Json::object());
    const Json entries = object.value("binaryData", Json::object());
    std::string text;
    for (const auto& [name, value] : entries.items()) {
      const std::size_t digit = name.find_first_not_of("epoch.0");
      text += name.substr(digit) + "=" + DecodeBase64(value.get<std::string>()).value_or("?") + " ";
    }
    return text;
  }

  std::string VersionOf(const ObjectKey& key) {
    return ResourceVersionOf(NewClient().Get(kConfigMaps, key).value_or(Json()));
  }
};

TEST_F(EpochObjectsTest, TenThousandEpochsAreStoredInObjectsThatTheApiTakes) {
  KubeStateStore store = NewStore("a");
  std::uint64_t version = 0;
  for (DataEpoch epoch = 1; epoch <= 10'000; epoch += 100) {
    Entries entries;
    for (std::uint64_t i = epoch; i < epoch + 100; ++i) {
      entries.push_back(Row(i, LargestRow(i)));
    }
    ASSERT_TRUE(store.CompareAndSwap(version++, entries).ok());
  }
  const Rows rows = StoredRows();
  ASSERT_THAT(rows, SizeIs(10'000));
  for (const auto& [epoch, row] : rows) {
    ASSERT_EQ(row, LargestRow(epoch));
  }
  EXPECT_THAT(EpochObjectsThere(), SizeIs(40));
  for (const Json& object : EpochObjectsThere()) {
    EXPECT_LT(object.dump().size(), kLargestEpochObject);
  }
  EXPECT_LT(NewClient().Get(kConfigMaps, {"team", "mnist-state"})->dump().size(), 2048U);
}

TEST_F(EpochObjectsTest, AResultIsBytes) {
  const std::string bytes("one\0two\xff", 8);
  ASSERT_TRUE(NewStore("a").CompareAndSwap(0, Ended(1, bytes)).ok());
  EXPECT_EQ(StoredRows(), (Rows{{1, bytes}}));
}

TEST_F(EpochObjectsTest, ObjectsBelongToTheJob) {
  ASSERT_TRUE(NewStore("a").CompareAndSwap(0, Ended(1, "1")).ok());
  const Json metadata = NewClient().Get(kConfigMaps, kFirst).value()["metadata"];
  EXPECT_EQ(metadata["labels"][kJobUidLabel], kJob.uid);
  EXPECT_EQ(metadata["ownerReferences"][0]["uid"], kJob.uid);
}

TEST_F(EpochObjectsTest, WhatAnAttemptHasUndoneIsKeptBesideItsOwnResults) {
  KubeStateStore store = NewStore("a");
  Store(store, 1, 3);
  ASSERT_TRUE(store.CompareAndSwap(3, Ended(2, 2, "again")).ok());
  EXPECT_EQ(FirstObject(), "1=1 2=2 2.2=again 3=3 ");
  KubeStateStore next = NewStore("next");
  const auto loaded = next.Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_TRUE(next.CompareAndSwap(loaded->version, Ended(3, 2, "again")).ok());
  EXPECT_EQ(FirstObject(), "1=1 2=2 2.2=again 3=3 3.2=again ");
}

TEST_F(EpochObjectsTest, AnAttemptThatAReplacedControllerHasNotStoredIsWrittenOver) {
  KubeStateStore old = NewStore("old");
  Store(old, 1, 2);
  KubeStateStore next = NewStore("next");
  ASSERT_TRUE(next.Load().ok());
  ASSERT_TRUE(next.CompareAndSwap(2, Stored(StateWith(2, 1))).ok());
  EXPECT_TRUE(absl::IsAborted(old.CompareAndSwap(2, Ended(1, 2, "old"))));
  EXPECT_EQ(FirstObject(), "1=1 1.2=old 2=2 ");
  ASSERT_TRUE(next.CompareAndSwap(3, Ended(3, "3", 2)).ok());
  EXPECT_EQ(FirstObject(), "1=1 2=2 3=3 ");
}

TEST_F(EpochObjectsTest, OfManyAttemptsTheOldestResultsGoBeforeTheObjectGetsTooLarge) {
  constexpr std::uint64_t kAttempts = 4;
  KubeStateStore store = NewStore("a");
  std::uint64_t version = 0;
  for (std::uint64_t attempt = 1; attempt <= kAttempts; ++attempt) {
    Entries entries;
    for (DataEpoch epoch = 1; epoch <= kEpochsOfAnObject; ++epoch) {
      entries.push_back({KeyOfRow(epoch, attempt), LargestRow(epoch, attempt)});
    }
    ASSERT_TRUE(store.CompareAndSwap(version++, entries).ok());
  }
  ASSERT_THAT(EpochObjectsThere(), SizeIs(1));
  const Json object = EpochObjectsThere().front();
  EXPECT_LT(object.dump().size(), kLargestEpochObject);
  std::size_t newest = 0;
  std::size_t before = 0;
  for (const auto& [name, value] : object["binaryData"].items()) {
    newest += name.ends_with(".4") ? 1 : 0;
    before += name.ends_with(".3") ? 1 : 0;
  }
  EXPECT_EQ(newest, kEpochsOfAnObject);
  EXPECT_GT(before, 0U);
  EXPECT_EQ(newest + before, object["binaryData"].size());
}

TEST_F(EpochObjectsTest, OnlyTheObjectOfTheEpochIsWritten) {
  KubeStateStore store = NewStore("a");
  Store(store, 1, 251);
  const std::string first = VersionOf(kFirst);
  const std::string second = VersionOf({"team", "mnist-epochs-1"});
  Store(store, 252, 252);
  EXPECT_EQ(VersionOf(kFirst), first);
  EXPECT_NE(VersionOf({"team", "mnist-epochs-1"}), second);
  const std::string now = VersionOf({"team", "mnist-epochs-1"});
  ASSERT_TRUE(store.CompareAndSwap(252, Stored(StateWith(1, 1))).ok());
  EXPECT_EQ(VersionOf({"team", "mnist-epochs-1"}), now);
}

TEST_F(EpochObjectsTest, ANewEpochTakesTwoRequests) {
  KubeStateStore store = NewStore("a");
  Store(store, 1, 2);
  const std::uint64_t before = server_.requests();
  Store(store, 3, 3);
  EXPECT_EQ(server_.requests() - before, 2U);
}

TEST_F(EpochObjectsTest, ResultsOfManyEpochsAtOnceGoWhereTheyBelong) {
  KubeStateStore store = NewStore("a");
  Entries entries;
  for (DataEpoch epoch = 1; epoch <= 1'000; ++epoch) {
    entries.push_back(Row(epoch, std::to_string(epoch)));
  }
  ASSERT_TRUE(store.CompareAndSwap(0, entries).ok());
  EXPECT_EQ(StoredRows(), RowsUpTo(1'000));
  EXPECT_THAT(EpochObjectsThere(), SizeIs(4));
}

TEST_F(EpochObjectsTest, TheNextControllerAddsToWhatItFinds) {
  KubeStateStore old = NewStore("old");
  Store(old, 1, 3);
  KubeStateStore next = NewStore("next");
  ASSERT_TRUE(next.Load().ok());
  Store(next, 4, 5);
  EXPECT_EQ(StoredRows(), RowsUpTo(5));
}

TEST_F(EpochObjectsTest, AnEntryThatIsNoResultIsRefused) {
  KubeStateStore store = NewStore("a");
  for (const char* key : {"epoch/",
                          "epoch/0",
                          "epoch/1x",
                          "epoch/-1",
                          "epoch/1.",
                          "epoch/1.0",
                          "epoch/1.1",
                          "epoch/1.2.3",
                          "epoch/.2",
                          "another"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(store.CompareAndSwap(0, {{key, "row"}}))) << key;
  }
}

// The old one does not know yet that it was replaced, and has the object as it is.
TEST_F(EpochObjectsTest, TheResultOfAReplacedControllerIsWrittenOver) {
  KubeStateStore old = NewStore("old");
  Store(old, 1, 3);
  KubeStateStore next = NewStore("next");
  ASSERT_TRUE(next.Load().ok());
  JobState state = StateWith(2, 1);
  state.epoch = 4;
  ASSERT_TRUE(next.CompareAndSwap(3, Stored(state)).ok());
  EXPECT_TRUE(absl::IsAborted(old.CompareAndSwap(3, {Row(4, "old"), Row(5, "old")})));
  EXPECT_EQ(StoredRows().at(4), "old");
  ASSERT_TRUE(next.CompareAndSwap(4, Ended(4, "4", 2)).ok());
  EXPECT_EQ(StoredRows(), RowsUpTo(4));
}

TEST_F(EpochObjectsTest, AReplacedControllerDoesNotWriteOverResults) {
  KubeStateStore old = NewStore("old");
  Store(old, 1, 3);
  KubeStateStore next = NewStore("next");
  ASSERT_TRUE(next.Load().ok());
  Store(next, 4, 5);
  EXPECT_TRUE(absl::IsAborted(old.CompareAndSwap(3, {Row(4, "old")})));
  EXPECT_TRUE(absl::IsAborted(NewStore("older").CompareAndSwap(0, {Row(1, "old")})));
  EXPECT_EQ(StoredRows(), RowsUpTo(5));
}

TEST_F(EpochObjectsTest, OfTwoControllersThatStoreAnEpochsResultOneIsRefused) {
  Entries first = Ended(1, "1");
  ASSERT_TRUE(NewStore("before").CompareAndSwap(0, first).ok());
  for (const bool one_first : {true, false}) {
    KubeStateStore one = NewStore("one");
    KubeStateStore two = NewStore("two");
    const auto loaded = one.Load();
    ASSERT_TRUE(loaded.ok() && two.Load().ok());
    const std::uint64_t version = loaded->version;
    KubeStateStore& winner = one_first ? one : two;
    KubeStateStore& loser = one_first ? two : one;
    ASSERT_TRUE(winner.CompareAndSwap(version, Ended(version + 1, "of the winner")).ok());
    EXPECT_TRUE(absl::IsAborted(loser.CompareAndSwap(version, Ended(version + 1, "of the loser"))));
    EXPECT_EQ(StoredRows().at(version + 1), "of the winner");
  }
}

TEST_F(EpochObjectsTest, ADeletedObjectIsWrittenAnewByWhoKnowsIt) {
  KubeStateStore store = NewStore("a");
  Store(store, 1, 3);
  ASSERT_TRUE(NewClient().Delete(kConfigMaps, kFirst).ok());
  ASSERT_TRUE(store.CompareAndSwap(3, Stored(StateWith(1, 1))).ok());
  ASSERT_TRUE(store.CompareAndSwap(4, Ended(4, "4")).ok());
  EXPECT_EQ(StoredRows(), RowsUpTo(4));
  EXPECT_FALSE(store.TakeLoss());
}

TEST_F(EpochObjectsTest, WithoutADeletedObjectTheJobGoesOnAndSaysSo) {
  KubeStateStore old = NewStore("old");
  Store(old, 1, 3);
  ASSERT_TRUE(NewClient().Delete(kConfigMaps, kFirst).ok());
  KubeStateStore next = NewStore("next");
  ASSERT_TRUE(next.Load().ok());
  Store(next, 4, 4);
  EXPECT_EQ(StoredRows(), (Rows{{4, "4"}}));
  EXPECT_THAT(next.TakeLoss().value_or(""),
              HasSubstr("epochs 1 to 3 any more: ConfigMap team/mnist-epochs-0 is missing"));
  EXPECT_FALSE(next.TakeLoss());
}

TEST_F(EpochObjectsTest, WhatSomebodyHasSpoiltIsLeftOut) {
  KubeStateStore old = NewStore("old");
  Store(old, 1, 3);
  const Json spoilt = {{"binaryData", {{"epoch.2", "bm8gZXBvY2g="}, {"note", "AA=="}}}};
  ASSERT_TRUE(NewClient().Patch(kConfigMaps, kFirst, PatchType::kMerge, spoilt).ok());
  KubeStateStore next = NewStore("next");
  ASSERT_TRUE(next.Load().ok());
  Store(next, 4, 4);
  EXPECT_EQ(StoredRows(), RowsUpTo(4));
}

TEST_F(EpochObjectsTest, AnObjectThatAnEarlierJobLeftBehindMakesWay) {
  const JobIdentity earlier{kJob.key, "earlier"};
  ASSERT_TRUE(NewStore("a", earlier).CompareAndSwap(0, {Row(1, "of the earlier")}).ok());
  ASSERT_TRUE(NewClient().Delete(kConfigMaps, {"team", "mnist-state"}).ok());
  KubeStateStore store = NewStore("b");
  ASSERT_TRUE(store.Load().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store.CompareAndSwap(0, Ended(1, "1"))));
  ASSERT_TRUE(store.CompareAndSwap(0, Ended(1, "1")).ok());
  EXPECT_EQ(StoredRows(), RowsUpTo(1));
}

class EpochObjectsFaults : public EpochObjectsTest,
                           public testing::WithParamInterface<MemoryApiServer::Fault> {
 protected:
  static constexpr std::uint64_t kWrites = 4;  // three objects and the state

  /// Results of 249 to 501, which are in three objects.
  static Entries Results(const std::string& by) {
    JobState state = StateWith(1, 1);
    state.epoch = 502;
    Entries entries{{controller::kStateKey, Encode(state)}};
    for (DataEpoch epoch = 249; epoch <= 501; ++epoch) {
      entries.push_back(Row(epoch, by));
    }
    return entries;
  }

  static Rows Expected(const std::string& by) {
    Rows rows = RowsUpTo(248);
    for (DataEpoch epoch = 249; epoch <= 501; ++epoch) {
      rows[epoch] = by;
    }
    return rows;
  }
};

INSTANTIATE_TEST_SUITE_P(Each,
                         EpochObjectsFaults,
                         testing::Values(MemoryApiServer::Fault::kRefuse,
                                         MemoryApiServer::Fault::kLoseAnswer),
                         [](const auto& fault) {
                           return fault.param == MemoryApiServer::Fault::kRefuse ? "Refused"
                                                                                 : "AnswerLost";
                         });

TEST_P(EpochObjectsFaults, WhicheverWriteFailsTheSameControllerGoesOn) {
  for (std::size_t write = 0; write < kWrites; ++write) {
    server_.CollectGarbage();  // of the case before: the job does not exist
    KubeStateStore store = NewStore("a");
    Store(store, 1, 248);
    FailWrite(write, GetParam());
    EXPECT_TRUE(absl::IsUnavailable(store.CompareAndSwap(248, Results("a")))) << write;
    ASSERT_TRUE(failed_);
    server_.SetFaults(nullptr);
    ASSERT_TRUE(store.CompareAndSwap(248, Stored(StateWith(1, 1, 2))).ok()) << write;
    EXPECT_EQ(StoredRows(), Expected("a")) << write;
  }
}

// The results that it finds are of epochs that have not ended yet; they come in another order.
TEST_P(EpochObjectsFaults, WhicheverWriteFailsTheNextControllersResultsCount) {
  for (std::size_t write = 0; write < kWrites; ++write) {
    server_.CollectGarbage();
    KubeStateStore old = NewStore("old");
    Store(old, 1, 248);
    FailWrite(write, GetParam());
    EXPECT_FALSE(old.CompareAndSwap(248, Results("old")).ok());
    ASSERT_TRUE(failed_);
    server_.SetFaults(nullptr);
    KubeStateStore next = NewStore("next");
    const auto loaded = next.Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    std::uint64_t version = loaded->version;
    for (DataEpoch epoch = 249; epoch <= 501; ++epoch) {
      ASSERT_TRUE(next.CompareAndSwap(version++, Ended(epoch, "next", 2)).ok()) << epoch;
    }
    EXPECT_EQ(StoredRows(), Expected("next")) << write;
    EXPECT_TRUE(absl::IsAborted(old.CompareAndSwap(248, Results("old"))));
    EXPECT_EQ(StoredRows(), Expected("next")) << write;
  }
}

}  // namespace
}  // namespace adamant::kube
