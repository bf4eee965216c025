#include "operator/kube/storage/kube_state_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/operator/kube/storage/state_store_rig.h"

namespace adamant::kube {
namespace {

using controller::JobState;
using testing::IsEmpty;
using testing::SizeIs;

const ObjectKey kRest{"team", "mnist-state"};

class KubeStateStoreTest : public StateStoreRig {};

TEST_F(KubeStateStoreTest, WhereNothingWasStoredTheVersionIsZero) {
  const auto snapshot = Reload();
  EXPECT_EQ(snapshot.version, 0u);
  EXPECT_THAT(snapshot.entries, IsEmpty());
}

TEST_F(KubeStateStoreTest, StatesOfEverySizeComeBackInMapsOf64) {
  for (const std::size_t buckets : {0u, 1u, 64u, 65u, 130u}) {
    const JobIdentity job{{"team", "job" + std::to_string(buckets)}, std::to_string(buckets)};
    const JobState state = StateWith(1, buckets);
    ASSERT_TRUE(NewStore("a", job).CompareAndSwap(0, Stored(state)).ok());
    const auto snapshot = NewStore("b", job).Load();
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    EXPECT_EQ(snapshot->version, 1u);
    EXPECT_EQ(StateIn(*snapshot), state);
    const auto maps =
        NewClient().List(kShardMaps, {.label_selector = kJobUidLabel + ("=" + job.uid)});
    EXPECT_THAT(*maps, SizeIs((buckets + 63) / 64));
  }
}

TEST_F(KubeStateStoreTest, EverythingBelongsToTheJob) {
  ASSERT_TRUE(NewStore("a").CompareAndSwap(0, Stored(StateWith(1, 1))).ok());
  const auto rest = NewClient().Get(kConfigMaps, kRest);
  const auto map = NewClient().Get(kShardMaps, {"team", "mnist-0"});
  ASSERT_TRUE(rest.ok() && map.ok());
  for (const Json& object : {*rest, *map}) {
    EXPECT_EQ(object["metadata"]["labels"][kJobUidLabel], kJob.uid);
    EXPECT_EQ(object["metadata"]["ownerReferences"][0]["uid"], kJob.uid);
  }
  EXPECT_EQ((*map)["job"], "mnist");
  EXPECT_EQ((*map)["jobUid"], kJob.uid);
  EXPECT_EQ((*map)["count"], 1);
}

TEST_F(KubeStateStoreTest, OnlyShardMapsThatChangedAreWritten) {
  KubeStateStore store = NewStore("a");
  JobState state = StateWith(1, 130);
  ASSERT_TRUE(store.CompareAndSwap(0, Stored(state)).ok());
  const auto before = MapVersions();
  state.message = "another";
  ASSERT_TRUE(store.CompareAndSwap(1, Stored(state)).ok());
  EXPECT_EQ(MapVersions(), before);
  state.buckets[64].version = 9;
  ASSERT_TRUE(store.CompareAndSwap(2, Stored(state)).ok());
  const auto after = MapVersions();
  EXPECT_EQ(after[0], before[0]);
  EXPECT_NE(after[1], before[1]);
  EXPECT_EQ(after[2], before[2]);
}

TEST_F(KubeStateStoreTest, ANewTermIsWrittenToAllShardMaps) {
  ASSERT_TRUE(NewStore("a").CompareAndSwap(0, Stored(StateWith(1, 130))).ok());
  const auto before = MapVersions();
  KubeStateStore next = NewStore("b");
  ASSERT_TRUE(next.Load().ok());
  ASSERT_TRUE(next.CompareAndSwap(1, Stored(StateWith(2, 130))).ok());
  const auto after = MapVersions();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NE(after[i], before[i]);
  }
}

TEST_F(KubeStateStoreTest, AnOlderControllersNextWriteIsRefused) {
  for (const std::size_t bucket : {0u, 64u, 129u, 130u}) {  // 130: of no record
    const JobIdentity job{{"team", "job" + std::to_string(bucket)}, std::to_string(bucket)};
    KubeStateStore old = NewStore("a", job);
    JobState state = StateWith(1, 130);
    ASSERT_TRUE(old.CompareAndSwap(0, Stored(state)).ok());
    KubeStateStore next = NewStore("b", job);
    ASSERT_TRUE(next.Load().ok());
    ASSERT_TRUE(next.CompareAndSwap(1, Stored(StateWith(2, 130))).ok());
    if (bucket < 130) {
      state.buckets[bucket].version = 9;
    }
    EXPECT_EQ(old.CompareAndSwap(1, Stored(state)).code(), absl::StatusCode::kAborted);
    EXPECT_EQ(StateIn(*NewStore("c", job).Load()), StateWith(2, 130));
    EXPECT_TRUE(next.CompareAndSwap(2, Stored(StateWith(2, 130, 2))).ok());
  }
}

TEST_F(KubeStateStoreTest, OfTwoThatStartAtOnceOneIsRefused) {
  KubeStateStore one = NewStore("a");
  KubeStateStore two = NewStore("b");
  ASSERT_TRUE(one.Load().ok());
  ASSERT_TRUE(two.Load().ok());
  EXPECT_TRUE(one.CompareAndSwap(0, Stored(StateWith(1, 0))).ok());
  EXPECT_EQ(two.CompareAndSwap(0, Stored(StateWith(1, 0))).code(), absl::StatusCode::kAborted);
}

TEST_F(KubeStateStoreTest, AVersionThatWasNotReadIsRefused) {
  KubeStateStore store = NewStore("a");
  EXPECT_EQ(store.CompareAndSwap(1, Stored(StateWith(1, 0))).code(), absl::StatusCode::kAborted);
}

TEST_F(KubeStateStoreTest, WhatAnEarlierJobLeftBehindIsTakenForNothingOfThisOne) {
  const JobIdentity earlier{kJob.key, "earlier"};
  ASSERT_TRUE(NewStore("a", earlier).CompareAndSwap(0, Stored(StateWith(1, 1))).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(NewStore("b").Load().status()));
  // That job is there no more, and so goes its state; its ShardMap goes when it is in the way.
  KubeStateStore store = NewStore("b");
  ASSERT_TRUE(store.Load().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store.CompareAndSwap(0, Stored(StateWith(1, 1)))));
  EXPECT_TRUE(store.CompareAndSwap(0, Stored(StateWith(1, 1))).ok());
  EXPECT_EQ(StateIn(Reload()), StateWith(1, 1));
}

TEST_F(KubeStateStoreTest, AMissingShardMapIsDataLoss) {
  for (const char* map : {"mnist-0", "mnist-1", "mnist-2"}) {
    StateStoreRig::server_.CollectGarbage();  // of the case before: the job does not exist
    ASSERT_TRUE(NewStore("a").CompareAndSwap(0, Stored(StateWith(1, 130))).ok());
    ASSERT_TRUE(NewClient().Delete(kShardMaps, {"team", map}).ok());
    EXPECT_EQ(NewStore("b").Load().status().code(), absl::StatusCode::kDataLoss) << map;
  }
}

TEST_F(KubeStateStoreTest, AJobThatWasBegunWithOlderDefaultsKeepsThem) {
  KubeStateStore store = NewStore("a");
  ASSERT_TRUE(store.Load().ok());
  EXPECT_FALSE(store.has_old_defaults());
  ASSERT_TRUE(store.CompareAndSwap(0, Stored(StateWith(1, 1))).ok());
  const Json patch = {{"data", {{"defaults", nullptr}}}};  // as an earlier operator has written it
  ASSERT_TRUE(NewClient().Patch(kConfigMaps, kRest, PatchType::kMerge, patch).ok());
  KubeStateStore next = NewStore("b");
  ASSERT_TRUE(next.Load().ok());
  EXPECT_TRUE(next.has_old_defaults());
  ASSERT_TRUE(next.CompareAndSwap(1, Stored(StateWith(2, 1))).ok());
  KubeStateStore last = NewStore("c");
  ASSERT_TRUE(last.Load().ok());
  EXPECT_TRUE(last.has_old_defaults());
}

TEST_F(KubeStateStoreTest, ADamagedVersionIsDataLoss) {
  ASSERT_TRUE(NewStore("a").CompareAndSwap(0, Stored(StateWith(1, 1))).ok());
  for (const char* version : {"", "x", "1x"}) {
    const Json patch = {{"data", {{"version", version}}}};
    ASSERT_TRUE(NewClient().Patch(kConfigMaps, kRest, PatchType::kMerge, patch).ok());
    EXPECT_EQ(NewStore("b").Load().status().code(), absl::StatusCode::kDataLoss) << version;
  }
}

}  // namespace
}  // namespace adamant::kube
