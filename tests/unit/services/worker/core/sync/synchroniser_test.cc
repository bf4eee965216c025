// What Synchroniser and the training threads do at the ends of things: drained, flush, evaluation,
// stop.

#include "services/worker/core/sync/synchroniser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

void PutBatches(Rig& rig, int count) {
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(rig.PutBatch());
  }
}

void PutValidationBatch(Rig& rig, std::uint64_t snapshot, DataEpoch epoch = 1) {
  Batch* const batch = rig.intake.TakeSlot();
  ASSERT_NE(batch, nullptr);
  FillBatch(100, *batch);
  batch->lease.batch.kind = WorkKind::kEvaluate;
  batch->snapshot = snapshot;
  rig.intake.Put(batch);
  rig.synchroniser.WantSnapshot(epoch, snapshot);
}

TEST(SynchroniserTest, NothingIsTrainedBeforeTheFirstWeightsHaveCome) {
  Rig rig({});
  rig.MakeThreads();
  PutBatches(rig, 3);
  for (int i = 0; i < 10; ++i) {
    rig.threads[0]->Advance();
  }
  EXPECT_EQ(rig.learner.steps(), 0u);
  rig.Settle();
  EXPECT_EQ(rig.learner.steps(), 3u);
}

TEST(SynchroniserTest, WhatAccruesIsPushedWhenAllIsDrained) {
  Rig rig({});
  rig.Begin();
  PutBatches(rig, 3);
  rig.Settle();
  EXPECT_TRUE(rig.acknowledged.empty());
  rig.intake.SetDrained(true);
  rig.Settle();
  EXPECT_EQ(rig.acknowledged.size(), 3u);
}

TEST(SynchroniserTest, AFlushDropsQueuedBatchesOfTheEpochAndPushesTheRest) {
  Rig rig({.threads = 2});
  rig.Begin();
  PutBatches(rig, 3);
  rig.Settle();
  PutBatches(rig, 2);
  rig.worker.Flush(1);
  rig.Settle();
  EXPECT_EQ(rig.synchroniser.TakeFlushed(), 1u);
  EXPECT_EQ(rig.synchroniser.TakeFlushed(), std::nullopt);
  EXPECT_EQ(rig.learner.steps(), 3u);
  EXPECT_EQ(rig.synchroniser.statistics().pushes_acknowledged, 1u);
  // The epoch is closed: its leases are void, so nothing is acknowledged or handed back.
  EXPECT_TRUE(rig.acknowledged.empty());
  EXPECT_TRUE(rig.handed_back.empty());
}

TEST(SynchroniserTest, AFlushWaitsUntilPushesAreAcknowledged) {
  Rig rig({});
  rig.Begin();
  PutBatches(rig, 2);
  rig.Settle();
  rig.worker.Flush(1);
  rig.threads[0]->Advance();
  ASSERT_TRUE(rig.Pump().ok());
  EXPECT_EQ(rig.synchroniser.TakeFlushed(), std::nullopt);
  rig.Settle();
  EXPECT_EQ(rig.synchroniser.TakeFlushed(), 1u);
}

TEST(SynchroniserTest, ValidationBatchesWaitForTheirSnapshotAndLeaveTheWeightsAlone) {
  Rig rig({});
  rig.Begin();
  const std::vector<float> before = rig.LocalWeights();
  PutValidationBatch(rig, 7);
  EXPECT_EQ(rig.threads[0]->Advance(), TrainingThread::Progress::kBlocked);
  rig.Settle();
  ASSERT_EQ(rig.acknowledged.size(), 1u);
  EXPECT_EQ(rig.acknowledged[0].batch.kind, WorkKind::kEvaluate);
  EXPECT_EQ(rig.LocalWeights(), before);
  // The next one of the snapshot needs no fetch.
  const std::uint64_t fetches = rig.synchroniser.statistics().fetches;
  PutValidationBatch(rig, 7);
  rig.Settle();
  EXPECT_EQ(rig.acknowledged.size(), 2u);
  EXPECT_EQ(rig.synchroniser.statistics().fetches, fetches);
  PutValidationBatch(rig, 8);
  rig.Settle();
  EXPECT_EQ(rig.acknowledged.size(), 3u);
  EXPECT_EQ(rig.synchroniser.statistics().fetches, fetches + 1);
}

TEST(SynchroniserTest, ABatchWhoseEvaluationWasGivenUpIsHandedBack) {
  Rig rig({});
  rig.Begin();
  PutValidationBatch(rig, 7);
  // A thread has taken it and waits for its values when the next evaluation begins.
  EXPECT_EQ(rig.threads[0]->Advance(), TrainingThread::Progress::kBlocked);
  PutValidationBatch(rig, 8);
  PutValidationBatch(rig, 7);
  rig.Settle();
  EXPECT_EQ(rig.handed_back.size(), 2u);
  EXPECT_EQ(rig.acknowledged.size(), 1u);
}

TEST(SynchroniserTest, ABatchOfAnEvaluationBeforeTheEpochThatHasBegunIsHandedBack) {
  Rig rig({});
  rig.Begin();
  PutValidationBatch(rig, 7);
  EXPECT_EQ(rig.threads[0]->Advance(), TrainingThread::Progress::kBlocked);
  const std::uint64_t fetches = rig.synchroniser.statistics().fetches;
  // The evaluation was begun anew as that of snapshot 9; this worker was dispatched nothing of it.
  rig.synchroniser.OnEpochBegun(2);
  rig.Settle();
  EXPECT_EQ(rig.handed_back.size(), 1u);
  PutValidationBatch(rig, 7);  // from a data server that is behind
  PutValidationBatch(rig, 8);
  rig.Settle();
  EXPECT_EQ(rig.handed_back.size(), 3u);
  EXPECT_TRUE(rig.acknowledged.empty());
  EXPECT_EQ(rig.synchroniser.statistics().fetches, fetches);
}

// While no controller is there epochs follow each other without a snapshot.
TEST(SynchroniserTest, TheNextSnapshotIsEvaluatedHoweverManyEpochsHaveBegunSinceTheLast) {
  Rig rig({});
  rig.Begin();
  PutValidationBatch(rig, 7);
  rig.Settle();
  ASSERT_EQ(rig.acknowledged.size(), 1u);
  for (const DataEpoch epoch : {2, 3, 4}) {
    rig.synchroniser.OnEpochBegun(epoch);
  }
  PutValidationBatch(rig, 8, 4);
  rig.Settle();
  EXPECT_EQ(rig.acknowledged.size(), 2u);
  EXPECT_TRUE(rig.handed_back.empty());
}

TEST(SynchroniserTest, TheEvaluationOfTheEpochThatHasBegunGoesOn) {
  Rig rig({});
  rig.Begin();
  rig.synchroniser.OnEpochBegun(1);
  PutValidationBatch(rig, 7);
  EXPECT_EQ(rig.threads[0]->Advance(), TrainingThread::Progress::kBlocked);
  rig.synchroniser.OnEpochBegun(1);  // from another data server
  rig.Settle();
  EXPECT_EQ(rig.acknowledged.size(), 1u);
  EXPECT_TRUE(rig.handed_back.empty());
}

TEST(SynchroniserTest, AStoppedWorkerPushesWhatAccruedAndHandsBackTheRest) {
  Rig rig({.threads = 2});
  rig.Begin();
  PutBatches(rig, 3);
  rig.Settle();
  PutBatches(rig, 4);
  rig.synchroniser.Stop();
  EXPECT_FALSE(rig.synchroniser.Stopped());
  rig.Settle();
  EXPECT_TRUE(rig.synchroniser.Stopped());
  EXPECT_EQ(rig.acknowledged.size(), 3u);
  EXPECT_EQ(rig.handed_back.size(), 4u);
  EXPECT_EQ(rig.threads[0]->Advance(), TrainingThread::Progress::kStopped);
}

TEST(SynchroniserTest, ASlowServerHoldsTheThreadsBack) {
  Rig rig({.fetch_every = 1000, .push_every = 1});
  rig.Begin();
  for (int i = 0; i < 40; ++i) {
    rig.PutBatch();
    rig.threads[0]->Advance();
    ASSERT_TRUE(rig.Pump().ok());
  }
  EXPECT_EQ(rig.learner.steps(), ThreadChannel::kAccumulators);
  EXPECT_EQ(rig.threads[0]->Advance(), TrainingThread::Progress::kBlocked);
  rig.Settle();
  EXPECT_GT(rig.learner.steps(), ThreadChannel::kAccumulators);
}

TEST(SynchroniserTest, AWorkerComesToRestThoughAnswersStandBehindBatchesWithoutASlot) {
  Rig rig({.fetch_every = 1000, .push_every = 1});
  rig.count_batches = false;
  rig.Begin();
  rig.PutBatch();
  rig.Settle();
  ASSERT_EQ(rig.acknowledged.size(), 1u);
  rig.synchroniser.Pause(1, rig.now);
  const std::uint32_t seen = rig.intake.slot_notifier().Read();
  ASSERT_TRUE(rig.Pump().ok());
  EXPECT_NE(rig.intake.slot_notifier().Read(), seen) << "who waits for a slot looks again";
  while (rig.PutBatch()) {
    rig.Settle();  // up to the threads' last accumulator
  }
  EXPECT_TRUE(rig.intake.settling());
  Batch behind;
  behind.pixels.resize(1);
  FillBatch(50, behind);
  rig.intake.OnNoSlot(behind.lease);
  ASSERT_TRUE(rig.Pump().ok());
  EXPECT_EQ(rig.synchroniser.TakePaused(), std::nullopt);
  EXPECT_TRUE(rig.handed_back.empty()) << "it would be dispatched again at once";
  rig.intake.OnAcknowledged(rig.acknowledged);
  EXPECT_TRUE(rig.synchroniser.TakePaused().has_value());
  ASSERT_TRUE(rig.Pump().ok());
  EXPECT_FALSE(rig.intake.settling()) << "pushes are still paused";
  EXPECT_THAT(rig.handed_back, testing::ElementsAre(behind.lease));
}

TEST(SynchroniserTest, PayloadsThatATransportHoldsAreNotOverwritten) {
  Rig rig({.fetch_every = 1000, .push_every = 1});
  rig.Begin();
  rig.PutBatch();
  rig.threads[0]->Advance();
  ASSERT_TRUE(rig.synchroniser.Advance(rig.now).ok());
  std::vector<PushPayload> held;
  for (const Synchroniser::Message& message : rig.synchroniser.TakeMessages()) {
    const auto& push = std::get<PushMessage>(message);
    held.push_back(rig.synchroniser.PayloadOf(push));
    ASSERT_TRUE(rig.synchroniser.OnPushReply(rig.servers.Apply(push, held.back()), rig.now).ok());
  }
  ASSERT_TRUE(rig.Pump().ok());
  EXPECT_EQ(rig.acknowledged.size(), 1u);
  EXPECT_TRUE(rig.synchroniser.Pinned());
  const std::span<const float> values = held[0].updates[0].values;
  const std::vector<float> before(values.begin(), values.end());
  for (int i = 0; i < 12; ++i) {
    rig.PutBatch();
    rig.Settle();
  }
  EXPECT_TRUE(std::ranges::equal(values, before));
  held.clear();
  ASSERT_TRUE(rig.Pump().ok());
  EXPECT_FALSE(rig.synchroniser.Pinned());
}

}  // namespace
}  // namespace adamant::worker
