#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "operator/core/job_controller.h"
#include "tests/unit/operator/core/harness.h"

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
  EXPECT_THAT(Pick<Export>(job.Pass(EpochSequence::kExportRetry)), SizeIs(1));
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

TEST(SnapshotTest, AFailureIsTriedAgainAndFinallyFailsTheJob) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  job.Flush(kWorker1);
  const SnapshotTaken failed{.snapshot = 1, .ok = false, .error = "disk full"};
  for (int i = 1; i < SnapshotTaker::kTries; ++i) {
    job.Tell(kServer0, failed);
    job.Tell(kServer1, failed);  // counts with the other one
    EXPECT_THAT(Sent<TakeSnapshot>(job.Pass(SnapshotTaker::kRetry)), SizeIs(2));
    EXPECT_NE(job.state().phase, Phase::kFailed);
  }
  job.Tell(kServer0, failed);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("disk full"));
}

}  // namespace
}  // namespace adamant::controller
