// Writes that fail, and controllers that end between them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/operator/kube/storage/state_store_rig.h"

namespace adamant::kube {
namespace {

using controller::JobState;

class KubeStateStoreFaults : public StateStoreRig,
                             public testing::WithParamInterface<MemoryApiServer::Fault> {
 protected:
  /// A job of its own for each case, with 130 buckets of epoch 1 stored by `store`.
  std::unique_ptr<KubeStateStore> Begin(const JobIdentity& job) {
    auto store = std::make_unique<KubeStateStore>(NewClient(), job, "old");
    EXPECT_TRUE(store->CompareAndSwap(0, Stored(StateWith(1, 130))).ok());
    return store;
  }

  static JobIdentity JobOf(std::size_t index) {
    return {{"team", "job" + std::to_string(index)}, "uid-of-" + std::to_string(index)};
  }

  /// Each record is whole, as it was or as it was to be.
  static void ExpectRecordsOfEpochs1And2(const JobState& state) {
    ASSERT_EQ(state.buckets.size(), 130u);
    for (std::size_t i = 0; i < 130; ++i) {
      const ConfigurationVersion version = state.buckets[i].version;
      EXPECT_TRUE(version == 1 || version == 2);
      EXPECT_EQ(state.buckets[i], StateWith(1, 130, version).buckets[i]);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Each,
                         KubeStateStoreFaults,
                         testing::Values(MemoryApiServer::Fault::kRefuse,
                                         MemoryApiServer::Fault::kLoseAnswer),
                         [](const auto& fault) {
                           return fault.param == MemoryApiServer::Fault::kRefuse ? "Refused"
                                                                                 : "AnswerLost";
                         });

TEST_P(KubeStateStoreFaults, WhicheverWriteFailsTheSameControllerGoesOn) {
  for (std::size_t write = 0;; ++write) {
    const JobIdentity job = JobOf(write);
    const auto store = Begin(job);
    FailWrite(write, GetParam());
    const absl::Status failed = store->CompareAndSwap(1, Stored(StateWith(1, 130, 2)));
    server_.SetFaults(nullptr);
    if (!failed_) {
      EXPECT_EQ(write, 4u);  // three ShardMaps and the ConfigMap
      break;
    }
    EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(store->CompareAndSwap(1, Stored(StateWith(1, 130, 3))).ok()) << write;
    EXPECT_TRUE(store->CompareAndSwap(2, {{"epoch/1", "row"}}).ok()) << write;
    EXPECT_EQ(StateIn(*NewStore("new", job).Load()), StateWith(1, 130, 3));
  }
}

TEST_P(KubeStateStoreFaults, WhicheverWriteFailsTheNextControllerGoesOnAndTheOldOneStops) {
  for (std::size_t write = 0; write < 4; ++write) {
    const JobIdentity job = JobOf(write);
    const auto old = Begin(job);
    FailWrite(write, GetParam());
    EXPECT_FALSE(old->CompareAndSwap(1, Stored(StateWith(1, 130, 2))).ok());
    ASSERT_TRUE(failed_);
    server_.SetFaults(nullptr);
    KubeStateStore next = NewStore("next", job);
    const auto snapshot = next.Load();
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    JobState state = StateIn(*snapshot);
    ExpectRecordsOfEpochs1And2(state);
    state.term = 2;
    ASSERT_TRUE(next.CompareAndSwap(snapshot->version, Stored(state)).ok());
    EXPECT_EQ(old->CompareAndSwap(1, Stored(StateWith(1, 130, 2))).code(),
              absl::StatusCode::kAborted);
    EXPECT_EQ(StateIn(*NewStore("reader", job).Load()), state);
  }
}

// Nobody has heard of the records before all are stored, so they are assigned anew.
TEST_P(KubeStateStoreFaults, AFirstAssignmentThatFailsHalfwayIsForgotten) {
  for (std::size_t write = 0; write < 3; ++write) {
    const JobIdentity job = JobOf(write);
    KubeStateStore old = NewStore("old", job);
    ASSERT_TRUE(old.CompareAndSwap(0, Stored(StateWith(1, 0))).ok());
    FailWrite(write, GetParam());
    EXPECT_FALSE(old.CompareAndSwap(1, Stored(StateWith(1, 130))).ok());
    server_.SetFaults(nullptr);
    KubeStateStore next = NewStore("next", job);
    const auto snapshot = next.Load();
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    EXPECT_EQ(StateIn(*snapshot), StateWith(1, 0));
    ASSERT_TRUE(next.CompareAndSwap(1, Stored(StateWith(2, 0))).ok());
    ASSERT_TRUE(next.CompareAndSwap(2, Stored(StateWith(2, 130, 5))).ok());
    EXPECT_EQ(StateIn(*NewStore("reader", job).Load()), StateWith(2, 130, 5));
  }
}

TEST_P(KubeStateStoreFaults, WhatCouldNotBeStoredIsStoredWithWhatFollows) {
  const auto store = Begin(kJob);
  FailWrite(0, GetParam());
  EXPECT_FALSE(store->CompareAndSwap(1, {{"epoch/1", "row"}}).ok());
  server_.SetFaults(nullptr);
  EXPECT_TRUE(store->CompareAndSwap(1, Stored(StateWith(1, 130, 2))).ok());
  EXPECT_EQ(Reload().version, 2u);
  EXPECT_EQ(StoredRows(), (Rows{{1, "row"}}));
}

TEST_F(KubeStateStoreFaults, WithoutTheApiTheStateIsNotKnown) {
  server_.SetFaults([](const HttpRequest&) { return Fault::kRefuse; });
  EXPECT_EQ(NewStore("a").Load().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(KubeStateStoreFaults, WhatWasReadInAnAttemptThatFailedIsForgotten) {
  Begin(kJob);
  KubeStateStore store = NewStore("new");
  server_.SetFaults([](const HttpRequest& request) {
    return request.target.find("/shardmaps") != std::string::npos ? Fault::kRefuse : Fault::kNone;
  });
  EXPECT_TRUE(absl::IsUnavailable(store.Load().status()));
  server_.SetFaults(nullptr);
  ASSERT_TRUE(NewClient().Delete(kConfigMaps, {kJob.key.ns, "mnist-state"}).ok());
  EXPECT_TRUE(absl::IsDataLoss(store.Load().status()));
}

// Two controllers may have the same term where neither has stored it in the ConfigMap.
TEST_F(KubeStateStoreFaults, RecordsThatAnotherOfTheSameTermHasWrittenAreNotWrittenOver) {
  Begin(kJob);
  KubeStateStore slow = NewStore("slow");
  ASSERT_TRUE(slow.Load().ok());
  FailWrite(3, Fault::kRefuse);  // all ShardMaps have its term, the ConfigMap has not
  EXPECT_FALSE(slow.CompareAndSwap(1, Stored(StateWith(2, 130))).ok());
  server_.SetFaults(nullptr);
  KubeStateStore other = NewStore("other");
  ASSERT_TRUE(other.Load().ok());
  FailWrite(1, Fault::kRefuse);  // one ShardMap has its records
  EXPECT_FALSE(other.CompareAndSwap(1, Stored(StateWith(2, 130, 2))).ok());
  server_.SetFaults(nullptr);
  EXPECT_EQ(slow.CompareAndSwap(1, Stored(StateWith(2, 130, 3))).code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(other.CompareAndSwap(1, Stored(StateWith(2, 130, 2))).ok());
}

}  // namespace
}  // namespace adamant::kube
