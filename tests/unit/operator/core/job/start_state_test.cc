#include "operator/core/job/start_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using std::chrono::seconds;
using testing::Each;
using testing::Field;
using testing::SizeIs;

constexpr std::uint64_t kNewUid = 43;

JobSettings SmallJobWithCheckpoints() {
  JobSettings settings = SmallJob();
  settings.checkpoint_interval = seconds(5);
  return settings;
}

/// A job that begins with what `state` says, on disks that hold nothing but its checkpoint.
class Successor {
 public:
  explicit Successor(const JobState& state) {
    job_.BeginWith(state);
    job_.Pass(seconds(1));
    for (std::size_t i = 0; i < job_.state().slots.size(); ++i) {
      const SlotId id = SlotAt(SmallJob(), i);
      job_.Join(id, "new " + ToString(id));
      job_.Tell(id, Heartbeat{});
    }
    job_.Tell(kServer0, StoredBuckets{});
    job_.Tell(kServer1, StoredBuckets{});
    job_.Serve(0);
    job_.Serve(1);
  }

  Harness& job() { return job_; }

 private:
  Harness job_{SmallJobWithCheckpoints()};
};

class StartStateTest : public testing::Test {
 protected:
  StartStateTest() {
    first_.Begin();
    first_.JoinAll();
  }

  void TakeCheckpoint() {
    first_.Pass(seconds(5));
    const std::uint64_t snapshot = first_.state().last_snapshot;
    first_.Tell(kWorker0, PushesPaused{.checkpoint = snapshot, .sequence = 17});
    first_.Tell(kWorker1, PushesPaused{.checkpoint = snapshot, .sequence = 23});
    first_.StoreSnapshot(kServer0, snapshot);
    first_.StoreSnapshot(kServer1, snapshot);
  }

  Harness first_{SmallJobWithCheckpoints()};
};

TEST_F(StartStateTest, WithoutACheckpointThereIsNothingToGoOnFrom) {
  EXPECT_TRUE(absl::IsFailedPrecondition(StateFrom(first_.state(), kNewUid).status()));
}

TEST_F(StartStateTest, FromTheEndOfAnEpochItIsEvaluatedAndTheNextBegins) {
  first_.TrainOnly();
  ASSERT_EQ(first_.state().step, Step::kEvaluating);
  const auto state = StateFrom(first_.state(), kNewUid);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->job_uid, kNewUid);
  Successor next(*state);
  Harness& job = next.job();
  EXPECT_THAT(job.state().buckets,
              Each(Field(&Configuration::restored_snapshot, state->checkpoint.snapshot)));
  EXPECT_EQ(job.state().epoch, 1u);
  job.TrainAndEvaluate(90);
  EXPECT_EQ(job.state().epoch, 2u);
  EXPECT_EQ(job.state().step, Step::kTraining);
  EXPECT_EQ(job.state().recovery.attempt, 1u);
  ASSERT_THAT(job.results(), SizeIs(1));
  EXPECT_EQ(job.results()[0].epoch, 1u);
}

TEST_F(StartStateTest, FromWithinAnEpochThatGoesOn) {
  TakeCheckpoint();
  ASSERT_NE(first_.state().checkpoint.snapshot, 0u);
  const auto state = StateFrom(first_.state(), kNewUid);
  ASSERT_TRUE(state.ok()) << state.status();
  Successor next(*state);
  EXPECT_EQ(next.job().state().epoch, 1u);
  EXPECT_EQ(next.job().state().step, Step::kTraining);
  EXPECT_EQ(next.job().state().phase, Phase::kRunning);
}

TEST_F(StartStateTest, WhatHappenedToTheOtherJobIsForgotten) {
  TakeCheckpoint();
  JobState before = first_.state();
  before.restarts = 4;
  before.active = seconds(100);
  before.recovery.ended_diverged = true;
  before.recovery.older = before.recovery.newest;
  const auto state = StateFrom(before, kNewUid);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->restarts, 0u);
  EXPECT_EQ(state->active, seconds(0));
  EXPECT_FALSE(state->recovery.ended_diverged);
  EXPECT_EQ(state->recovery.older.checkpoint.snapshot, 0u);
  EXPECT_EQ(state->recovery.healthy.checkpoint, state->checkpoint);
}

TEST(StartWithWeightsTest, BucketsComeFromTheDisksAndTheFirstEpochIsOpened) {
  std::vector<CheckpointBucket> buckets;
  for (std::uint32_t i = 0; i < SmallJob().buckets; ++i) {
    buckets.push_back({.slot = i % 2, .generation = 1, .updates = 0, .checksum = i});
  }
  Successor next(StateWithWeights(SmallJob(), kNewUid, std::move(buckets)));
  const JobState& state = next.job().state();
  EXPECT_EQ(state.job_uid, kNewUid);
  EXPECT_EQ(state.epoch, 1u);
  EXPECT_EQ(state.step, Step::kTraining);
  EXPECT_EQ(state.phase, Phase::kRunning);
  EXPECT_THAT(state.buckets, Each(Field(&Configuration::restored_snapshot, kGivenWeights)));
  EXPECT_EQ(state.recovery.first.snapshot, kGivenWeights);
}

}  // namespace
}  // namespace adamant::controller
