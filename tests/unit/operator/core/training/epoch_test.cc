#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(EpochTest, StepsFollowEachOtherAndTheResultHoldsTheCounts) {
  Harness job;
  job.Begin();
  job.JoinAll();
  EXPECT_THAT(Sent<CloseEpoch>(job.Tell(kData0, EpochEnded{1})), SizeIs(2));
  EXPECT_EQ(job.state().phase, Phase::kEvaluating);
  EXPECT_THAT(Sent<FlushWorker>(job.ClosePart(0)), IsEmpty());
  EXPECT_THAT(Sent<FlushWorker>(job.ClosePart(1)), SizeIs(2));
  EXPECT_THAT(Sent<TakeSnapshot>(job.Flush(kWorker1)), IsEmpty());
  const auto snapshots = Sent<TakeSnapshot>(job.Flush(kWorker0));
  ASSERT_THAT(snapshots, SizeIs(2));
  EXPECT_EQ(snapshots[0].second.snapshot, 1u);
  EXPECT_THAT(Sent<Evaluate>(job.StoreSnapshot(kServer0, 1)), IsEmpty());
  const auto evaluate = Sent<Evaluate>(job.StoreSnapshot(kServer1, 1));
  ASSERT_THAT(evaluate, SizeIs(1));
  EXPECT_EQ(evaluate[0].first, job.ConnectionOf(kData0));
  const auto actions = job.EvaluateAs(80);
  ASSERT_THAT(Pick<EpochDone>(actions), SizeIs(1));
  const EpochResult row = Pick<EpochDone>(actions)[0].result;
  EXPECT_EQ(row.epoch, 1u);
  EXPECT_EQ(row.counted, 90u);
  EXPECT_EQ(row.left, 10u);
  EXPECT_EQ(row.retrained, 2u);
  EXPECT_DOUBLE_EQ(row.top1, 0.8);
  EXPECT_DOUBLE_EQ(row.validation_loss, 0.25);
  EXPECT_THAT(job.results(), ElementsAre(row));
  EXPECT_EQ(Sent<OpenEpoch>(actions)[0].second.epoch, 2u);
}

TEST(EpochTest, RepeatedAndLateAnswersChangeNothing) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(50);
  EXPECT_THAT(job.Tell(kData0, EpochEnded{1}), IsEmpty());
  EXPECT_THAT(job.Tell(kData0, PartClosed{.epoch = 1, .part = 0}), IsEmpty());
  EXPECT_THAT(job.Tell(kWorker0, WorkerFlushed{1}), IsEmpty());
  EXPECT_THAT(job.StoreSnapshot(kServer0, 1), IsEmpty());
  EXPECT_THAT(job.Tell(kData0, Evaluated{.epoch = 1, .snapshot = 1, .examples = 1, .correct = 1}),
              IsEmpty());
  EXPECT_EQ(job.state().epoch, 2u);
  EXPECT_THAT(job.results(), SizeIs(1));
}

TEST(EpochTest, AMemberThatSpeaksOutOfItsRoleIsNotHeard) {
  Harness job;
  job.Begin();
  job.JoinAll();
  EXPECT_THAT(job.Tell(kWorker0, EpochEnded{1}), IsEmpty());
  EXPECT_EQ(job.state().step, Step::kTraining);
}

TEST(EpochTest, TheLastEpochIsExportedAndTheJobSucceeds) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(50);
  const auto actions = job.TrainAndEvaluate(60);
  ASSERT_THAT(Pick<Export>(actions), SizeIs(1));
  EXPECT_EQ(Pick<Export>(actions)[0].snapshot, 2u);
  const auto end = job.Handle(Exported{.snapshot = 2, .status = absl::OkStatus()});
  EXPECT_EQ(job.state().phase, Phase::kSucceeded);
  EXPECT_THAT(Sent<Stop>(end), SizeIs(2));  // the workers first
}

TEST(EpochTest, ReachingTheTargetEndsTheJobEarly) {
  JobSettings settings = SmallJob();
  settings.epochs = 100;
  settings.target_accuracy = 0.6;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  EXPECT_THAT(Pick<Export>(job.TrainAndEvaluate(59)), IsEmpty());
  EXPECT_THAT(Pick<Export>(job.TrainAndEvaluate(60)), SizeIs(1));
}

TEST(EpochTest, AFailedExportFailsTheJobAndAResumeExportsAgain) {
  JobSettings settings = SmallJob();
  settings.epochs = 1;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(50);
  job.Handle(Exported{.snapshot = 1, .status = absl::ResourceExhaustedError("disk full")});
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("disk full"));
  job.RestartController();
  const auto actions = job.JoinAll("again");
  ASSERT_THAT(Pick<Export>(actions), SizeIs(1));
  EXPECT_EQ(Pick<Export>(actions)[0].snapshot, 1u);
}

TEST(EpochTest, AnExportIsTriedAgainWhenAServerIsAway) {
  JobSettings settings = SmallJob();
  settings.epochs = 1;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(50);
  job.Handle(Exported{.snapshot = 1, .status = absl::UnavailableError("connection refused")});
  EXPECT_NE(job.state().phase, Phase::kFailed);
  EXPECT_THAT(Pick<Export>(job.Pass(ExportCoordinator::kRetry)), SizeIs(1));
  job.Handle(Exported{.snapshot = 1, .status = absl::OkStatus()});
  EXPECT_EQ(job.state().phase, Phase::kSucceeded);
}

TEST(EpochTest, AnswersToAnEarlierControllerWaitUntilTheMembersAreBack) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  job.Flush(kWorker1);
  job.StoreSnapshot(kServer0, 1);
  job.StoreSnapshot(kServer1, 1);
  job.RestartController();
  job.Join(kData0, ToString(kData0), 1);
  job.EvaluateAs(50);
  EXPECT_EQ(job.state().epoch, 1u) << "the servers are not ready for another epoch";
  EXPECT_EQ(job.state().step, Step::kEvaluating);
}

// --- Epochs that ended while no controller was there

Heartbeat Decided(DataEpoch epoch, std::vector<UnattendedEpoch> unattended = {}) {
  return {.progress = DataServerProgress{
              .epoch = epoch, .decided_epoch = epoch, .unattended = std::move(unattended)}};
}

JobSettings LongJob() {
  JobSettings settings = SmallJob();
  settings.epochs = 6;
  return settings;
}

const std::vector<UnattendedEpoch> kThreeEpochs = {{.epoch = 1, .counted = 100},
                                                   {.epoch = 2, .counted = 90, .left = 10},
                                                   {.epoch = 3, .counted = 100, .retrained = 4}};

TEST(UnattendedTest, AControllerThatComesBackGoesOnInTheDataTiersEpochWithARowForEach) {
  Harness job(LongJob());
  job.Begin();
  job.JoinAll();
  job.RestartController();
  job.JoinAll("again");
  const auto actions = job.Tell(kData0, Decided(4, kThreeEpochs));
  EXPECT_EQ(job.state().epoch, 4u);
  EXPECT_EQ(job.state().step, Step::kTraining);
  ASSERT_THAT(job.results(), SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(job.results()[i].epoch, kThreeEpochs[i].epoch);
    EXPECT_EQ(job.results()[i].counted, kThreeEpochs[i].counted);
    EXPECT_EQ(job.results()[i].left, kThreeEpochs[i].left);
    EXPECT_EQ(job.results()[i].retrained, kThreeEpochs[i].retrained);
    EXPECT_FALSE(job.results()[i].is_validated());
  }
  EXPECT_THAT(Pick<EpochDone>(actions), SizeIs(3));
  const auto opened = Sent<OpenEpoch>(actions);
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 4u);
  EXPECT_THAT(job.Tell(kData0, Decided(4)), IsEmpty()) << "and that once";
  job.TrainAndEvaluate(50);
  EXPECT_EQ(job.results().back().epoch, 4u);
  EXPECT_TRUE(job.results().back().is_validated());
}

TEST(UnattendedTest, OnlyTheOwnerOfPartZeroSpeaksForTheDataTier) {
  Harness job(LongJob());
  job.Begin();
  job.JoinAll();
  job.Tell(kData1, Decided(4, kThreeEpochs));
  EXPECT_EQ(job.state().epoch, 1u);
}

TEST(UnattendedTest, NeitherBackwardsNorBeyondTheLastEpoch) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(50);
  job.Tell(kData0, Decided(1));
  job.Tell(kData0, Decided(2, {{.epoch = 1, .counted = 100}}));
  job.Tell(kData0, Decided(3));
  EXPECT_EQ(job.state().epoch, 2u);
  EXPECT_THAT(job.results(), SizeIs(1)) << "it has the row of epoch 1, with accuracy";
}

TEST(UnattendedTest, EpochsThatNobodyTellsOfAreToldToBeLost) {
  Harness job(LongJob());
  job.Begin();
  job.JoinAll();
  const auto actions = job.Tell(kData0, Decided(3, {{.epoch = 2, .counted = 100}}));
  EXPECT_EQ(job.state().epoch, 3u);
  const auto notes = Pick<Note>(actions);
  EXPECT_THAT(notes, testing::Contains(testing::Field(&Note::text, HasSubstr("are lost"))));
}

TEST(UnattendedTest, WhatTheControllerHadSeenOfTheEpochStaysKnown) {
  Harness job(LongJob());
  job.Begin();
  job.JoinAll();
  job.Tell(kWorker0, Heartbeat{.progress = WorkerProgress{.trained_examples = 80}});
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  job.Flush(kWorker1);
  job.RestartController();
  job.JoinAll("again");
  job.Tell(kData0, Decided(2, {{.epoch = 1, .counted = 100}}));
  ASSERT_THAT(job.results(), SizeIs(1));
  EXPECT_EQ(job.results()[0].trained, 80u);
  EXPECT_EQ(job.results()[0].counted, 100u);
  EXPECT_EQ(job.results()[0].snapshot, 0u) << "it was never complete";
}

TEST(UnattendedTest, ANewControllerTakesNoSnapshotBeforeTheDataTierHasSaidThatItWaits) {
  Harness job(LongJob());
  job.Begin();
  job.JoinAll();
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  job.Flush(kWorker1);
  ASSERT_EQ(job.state().step, Step::kSnapshot);
  job.RestartController();
  const auto actions = job.JoinAll("again");
  EXPECT_THAT(Sent<TakeSnapshot>(actions), IsEmpty());
  EXPECT_THAT(Sent<CloseEpoch>(actions), SizeIs(2));
  job.CloseParts();
  job.Flush(kWorker0);
  EXPECT_THAT(Sent<TakeSnapshot>(job.Flush(kWorker1)), SizeIs(2));
  EXPECT_EQ(job.state().row.counted, 90u);
}

TEST(UnattendedTest, NeitherDoesOneThatStoodStill) {
  Harness job(LongJob());
  job.Begin();
  job.JoinAll();
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  job.Flush(kWorker1);
  job.StoreSnapshot(kServer0, 1);
  job.Sleep(std::chrono::seconds(60));
  EXPECT_THAT(Sent<CloseEpoch>(job.StoreSnapshot(kServer1, 1)), SizeIs(2));
  EXPECT_EQ(job.state().step, Step::kClosing);
  job.Tell(kData0, Decided(4, kThreeEpochs));
  EXPECT_EQ(job.state().epoch, 4u);
  EXPECT_EQ(job.state().checkpoint.snapshot, 0u) << "what is copied now is no epoch's end";
}

TEST(UnattendedTest, NorDoesOneThatComesBackInTheMiddleOfAnEvaluation) {
  Harness job(LongJob());
  job.Begin();
  job.JoinAll();
  job.TrainOnly();
  ASSERT_EQ(job.state().step, Step::kEvaluating);
  job.RestartController();
  const auto actions = job.JoinAll("again");
  EXPECT_THAT(Sent<TakeSnapshot>(actions), IsEmpty()) << "of what has been pushed since";
  EXPECT_THAT(Sent<Evaluate>(actions), IsEmpty());
  EXPECT_THAT(Sent<CloseEpoch>(actions), SizeIs(2));
  const std::uint64_t counted = job.state().row.counted;
  job.CloseParts();
  job.Flush(kWorker0);
  const auto asked = Sent<TakeSnapshot>(job.Flush(kWorker1));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_EQ(asked[0].second.snapshot, 1u) << "the same";
  EXPECT_EQ(job.state().row.counted, 90u);
  EXPECT_LE(counted, 90u);
  job.StoreSnapshot(kServer0, 1);
  EXPECT_THAT(Sent<Evaluate>(job.StoreSnapshot(kServer1, 1)), SizeIs(1));
}

TEST(UnattendedTest, NorWhileADataServerIsLostThatMayLiveAndGoOn) {
  Harness job(LongJob());
  job.Begin();
  job.JoinAll();
  job.TrainOnly();
  ASSERT_EQ(job.state().step, Step::kEvaluating);
  EXPECT_THAT(Sent<CloseEpoch>(job.Exit(kData0)), testing::Not(IsEmpty()));
  EXPECT_EQ(job.state().step, Step::kClosing);
  job.EvaluateAs(50);
  EXPECT_THAT(job.results(), IsEmpty());
}

TEST(UnattendedTest, AModelThatIsBeingWrittenIsTheEndOfTheJobWhateverTheDataTierDoes) {
  JobSettings settings = LongJob();
  settings.target_accuracy = 0.5;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(60);
  ASSERT_EQ(job.state().step, Step::kExporting);
  job.Tell(kData0, Decided(2, {{.epoch = 1, .counted = 100}}));
  EXPECT_EQ(job.state().step, Step::kExporting);
  EXPECT_THAT(job.results(), SizeIs(1));
}

TEST(SnapshotTest, TheEvaluatedModelIsKeptWhileTheNextIsTaken) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(50);
  job.Tell(kData0, EpochEnded{2});
  job.CloseParts();
  job.Flush(kWorker0);
  const auto asked = Sent<TakeSnapshot>(job.Flush(kWorker1));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_EQ(asked[0].second.keep_from, 2u);
  EXPECT_THAT(asked[0].second.keep, ElementsAre(1u));
}

TEST(SnapshotTest, AFullDiskIsTriedAgainAndFinallyFailsTheJob) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  job.Flush(kWorker1);
  const SnapshotTaken failed{.snapshot = 1, .ok = false, .error = "disk full", .disk_full = true};
  for (int i = 1; i < SnapshotCoordinator::kTries; ++i) {
    job.Tell(kServer0, failed);
    job.Tell(kServer1, failed);  // counts with the other one
    EXPECT_THAT(Sent<TakeSnapshot>(job.Pass(SnapshotCoordinator::kRetry)), SizeIs(2));
    EXPECT_NE(job.state().phase, Phase::kFailed);
  }
  job.Tell(kServer0, failed);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("disk full"));
}

TEST(SnapshotTest, WorkersFlushAgainAfterARollback) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  const auto roll_back = [&](const std::string& uid) {
    job.Exit(kServer1);
    auto all = job.Pass(seconds(2), {kServer1});
    Harness::Append(all, job.ReplaceServer(1, uid));
    return all;
  };
  roll_back("second");
  EXPECT_THAT(Sent<FlushWorker>(job.Flush(kWorker1)), SizeIs(2)) << "worker 0 was done before";
  job.Flush(kWorker0);
  EXPECT_THAT(Sent<TakeSnapshot>(job.Flush(kWorker1)), SizeIs(2));
  for (const Step step : {Step::kSnapshot, Step::kEvaluating}) {
    ASSERT_EQ(job.state().step, step);
    EXPECT_THAT(Sent<FlushWorker>(roll_back(step == Step::kSnapshot ? "third" : "fourth")),
                SizeIs(2));
    job.Flush(kWorker0);
    EXPECT_THAT(Sent<TakeSnapshot>(job.Flush(kWorker1)), SizeIs(2));
    job.StoreSnapshot(kServer0, 1);
    job.StoreSnapshot(kServer1, 1);
  }
  job.EvaluateAs(50);
  EXPECT_EQ(job.state().epoch, 2u);
}

// It may lack what workers have sent again since, or hold what was rolled back.
TEST(SnapshotTest, ABucketOfAnEarlierGenerationDoesNotCount) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Exit(kServer1);
  job.Pass(seconds(2), {kServer1});
  job.ReplaceServer(1, "again");
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  job.Flush(kWorker1);
  job.StoreSnapshot(kServer0, 1);
  SnapshotTaken early{.snapshot = 1, .ok = true, .error = "", .buckets = {}};
  for (const BucketId bucket : {1U, 3U}) {
    ASSERT_EQ(job.state().buckets[bucket].generation, 2u);
    early.buckets.push_back({.bucket = bucket, .configuration_version = 1, .generation = 1});
  }
  job.Tell(kServer1, early);
  EXPECT_EQ(job.state().step, Step::kSnapshot);
  job.StoreSnapshot(kServer1, 1);
  EXPECT_EQ(job.state().step, Step::kEvaluating);
}

TEST(SnapshotTest, AWorkerThatHasNotComeBackToANewControllerIsWaitedFor) {
  Harness job;
  job.Begin();
  job.JoinAll();
  const std::vector<StartProcess> running = job.controller().Wanted();
  job.RestartController({.running = running});
  for (const StartProcess& process : running) {
    if (process.id != kWorker1) {
      job.Join(process.id, ToString(process.id), 1);
      job.Tell(process.id, Heartbeat{});
    }
  }
  job.Serve(0);
  job.Serve(1);
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  EXPECT_THAT(Sent<TakeSnapshot>(job.Flush(kWorker0)), IsEmpty());
  EXPECT_THAT(Sent<FlushWorker>(job.Join(kWorker1, ToString(kWorker1), 1)), SizeIs(1));
  EXPECT_THAT(Sent<TakeSnapshot>(job.Flush(kWorker1)), SizeIs(2));
}

TEST(SnapshotTest, ABucketThatIsNotServedIsWaitedFor) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  job.Flush(kWorker1);
  job.StoreSnapshot(kServer1, 1);
  const SnapshotTaken full{.snapshot = 1, .ok = false, .error = "disk full", .disk_full = true};
  for (int i = 1; i < SnapshotCoordinator::kTries; ++i) {
    job.Tell(kServer0, full);
    job.Pass(SnapshotCoordinator::kRetry);
  }
  const SnapshotTaken early{.snapshot = 1, .ok = false, .error = "bucket 0 is not served yet"};
  job.Tell(kServer0, early);
  EXPECT_THAT(Sent<TakeSnapshot>(job.Pass(SnapshotCoordinator::kFirstWait)), SizeIs(1)) << "soon";
  job.Tell(kServer0, early);
  EXPECT_THAT(Sent<TakeSnapshot>(job.Pass(SnapshotCoordinator::kFirstWait)), IsEmpty())
      << "and later";
  for (int i = 0; i < 3 * SnapshotCoordinator::kTries; ++i) {
    job.Tell(kServer0, early);
    EXPECT_THAT(Sent<TakeSnapshot>(job.Pass(SnapshotCoordinator::kRetry)), SizeIs(1));
  }
  EXPECT_NE(job.state().phase, Phase::kFailed);
  job.StoreSnapshot(kServer0, 1);
  EXPECT_EQ(job.state().step, Step::kEvaluating);
}

}  // namespace
}  // namespace adamant::controller
