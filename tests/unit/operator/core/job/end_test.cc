#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(DeadlineTest, TheJobFailsWhenItsTimeIsUpAlsoAcrossRestarts) {
  JobSettings settings = SmallJob();
  settings.active_deadline = seconds(100);
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.Pass(seconds(60));
  job.TrainAndEvaluate(50);
  job.RestartController();
  job.JoinAll("again");
  job.Pass(seconds(39));
  EXPECT_EQ(job.state().phase, Phase::kRunning);
  job.Pass(seconds(1));
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("activeDeadline, 100 s"));
  EXPECT_EQ(job.controller().Report().over_deadline, "spec.runPolicy.activeDeadline");
  const auto read = JobController::Restore(settings, Encode(job.state()));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)->Report().over_deadline, "spec.runPolicy.activeDeadline");
  settings.active_deadline = seconds(200);
  const auto raised = JobController::Restore(settings, Encode(job.state()));
  ASSERT_TRUE(raised.ok());
  EXPECT_EQ((*raised)->Report().over_deadline, "");
}

TEST(DeadlineTest, TheTimeOfAnEpochStartsAnewWithEachEpoch) {
  JobSettings settings = SmallJob();
  settings.epoch_deadline = seconds(10);
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.Pass(seconds(9));
  job.TrainAndEvaluate(50);
  job.Pass(seconds(9));
  EXPECT_EQ(job.state().phase, Phase::kRunning);
  job.Pass(seconds(1));
  EXPECT_THAT(job.state().message, HasSubstr("epochDeadline"));
  EXPECT_EQ(job.controller().Report().over_deadline, "spec.runPolicy.epochDeadline");
}

TEST(DeadlineTest, TheControllerAsksToBeWokenInTime) {
  JobSettings settings = SmallJob();
  settings.epoch_deadline = seconds(5);
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  EXPECT_EQ(job.controller().NextTimer(job.now()), job.now() + seconds(5));
}

TEST(EndTest, TheReportOfAJobThatHasEndedHasItsLastNumbers) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Tell(kWorker0,
           Heartbeat{.progress = WorkerProgress{
                         .trained_examples = 100, .loss_sum = 50, .batches_of_others = {0, 2}}});
  job.TrainAndEvaluate(50);
  job.Tell(kWorker0,
           Heartbeat{.progress = WorkerProgress{
                         .trained_examples = 200, .loss_sum = 75, .batches_of_others = {0, 4}}});
  job.TrainAndEvaluate(60);
  job.Handle(Exported{.snapshot = job.state().evaluated_snapshot, .status = absl::OkStatus()});
  ASSERT_EQ(job.state().phase, Phase::kSucceeded);
  job.RestartController();  // as whoever reads its state
  const JobReport report = job.controller().Report();
  EXPECT_EQ(report.training_loss, 0.25);
  EXPECT_EQ(report.batches_of_others, 1);
}

TEST(EndTest, AReconcilerThatLearnsLateOfExitsKillsLater) {
  JobSettings settings = SmallJob();
  settings.exit_delay = seconds(10);
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.Handle(SuspendRequested{.reason = "for a test"});
  EXPECT_THAT(Pick<KillProcess>(job.Pass(seconds(30))), IsEmpty());
  EXPECT_THAT(Pick<KillProcess>(job.Pass(milliseconds(2'500))), SizeIs(6));
}

TEST(EndTest, ProcessesThatHaveNotJoinedAreNotWantedOnceTheirRoleIsStopped) {
  Harness job;
  job.Begin();
  EXPECT_EQ(job.controller().Wanted().size(), 6u);
  job.Handle(SuspendRequested{.reason = "for a test"});
  EXPECT_EQ(job.controller().Wanted().size(), 4u);
  job.Exit(kWorker0);
  job.Exit(kWorker1);
  EXPECT_EQ(job.controller().Wanted().size(), 2u);
}

TEST(SpecChangedTest, WhatIsChangedCountsFromNowOn) {
  JobSettings settings = SmallJob();
  settings.restart_limit = 5;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.Pass(seconds(60));
  settings.active_deadline = seconds(90);
  settings.epoch_deadline = seconds(65);
  settings.restart_limit = 0;
  job.Handle(SpecChanged{settings});
  EXPECT_EQ(job.controller().NextTimer(job.now()), job.now() + seconds(5));
  EXPECT_EQ(job.state().phase, Phase::kRunning);
  job.Exit(kWorker0);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("restart budget of 0"));
  EXPECT_EQ(job.controller().Report().end, EndKind::kOutOfRestarts);
  EXPECT_EQ(job.controller().Report().over_deadline, "");
}

TEST(SpecChangedTest, WhatElseIsDifferentIsNotTakenOver) {
  Harness job;
  job.Begin();
  job.JoinAll();
  JobSettings settings = SmallJob();
  settings.parameter_servers = 7;
  settings.data_servers = 5;
  settings.name = "another";
  job.Handle(SpecChanged{settings});
  EXPECT_EQ(job.controller().Report().name, "test");
  EXPECT_EQ(job.controller().Wanted().size(), 6u);
}

TEST(EndTest, RolesLeaveInOrderAndTheLastExitFinishesTheJob) {
  Harness job;
  job.Begin();
  job.JoinAll();
  EXPECT_THAT(Sent<Stop>(job.Handle(SuspendRequested{.reason = "interrupted"})), SizeIs(2));
  EXPECT_EQ(job.state().phase, Phase::kSuspended);
  job.Exit(kWorker0, "exited with code 0");
  EXPECT_THAT(Sent<Stop>(job.Exit(kWorker1, "exited with code 0")), SizeIs(2));
  job.Exit(kData0, "exited with code 0");
  EXPECT_THAT(Sent<Stop>(job.Exit(kData1, "exited with code 0")), SizeIs(2));
  job.Exit(kServer0, "exited with code 0");
  const auto end = job.Exit(kServer1, "exited with code 0");
  EXPECT_THAT(Pick<Finished>(end), SizeIs(1));
  EXPECT_THAT(Pick<KillProcess>(end), IsEmpty());
  EXPECT_EQ(job.state().restarts, 0u);
}

TEST(EndTest, WhoDoesNotLeaveIsKilledWithinThreeSeconds) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Handle(SuspendRequested{.reason = "interrupted"});
  const auto end = job.Pass(milliseconds(2900));
  EXPECT_THAT(Pick<KillProcess>(end), SizeIs(6));
  EXPECT_THAT(Pick<Finished>(end), SizeIs(1));
}

TEST(EndTest, ASuspendedJobGoesOnInTheSameEpoch) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(50);
  job.Handle(SuspendRequested{.reason = "interrupted"});
  job.RestartController();
  const auto opened = Sent<OpenEpoch>(job.JoinAll("again"));
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 2u);
}

TEST(EndTest, AJobThatSucceededIsNotRunAgain) {
  JobSettings settings = SmallJob();
  settings.epochs = 1;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(50);
  job.Handle(Exported{.snapshot = 1, .status = absl::OkStatus()});
  const auto actions = job.RestartController();
  EXPECT_THAT(Pick<StartProcess>(actions), IsEmpty());
  EXPECT_THAT(Pick<Finished>(actions), SizeIs(1));
}

// Every step must be entered again from what was stored, whatever the controller was waiting for.
TEST(RestartTest, ARestartedControllerGoesOnFromEveryStep) {
  for (int steps = 0; steps <= 4; ++steps) {
    SCOPED_TRACE(steps);
    JobSettings settings = SmallJob();
    settings.epochs = 1;
    Harness job(settings);
    job.Begin();
    job.JoinAll();
    if (steps > 0) {
      job.Tell(kData0, EpochEnded{1});
    }
    if (steps > 1) {
      job.CloseParts();
    }
    if (steps > 2) {
      job.Flush(kWorker0);
      job.Flush(kWorker1);
    }
    if (steps > 3) {
      job.StoreSnapshot(kServer0, 1);
      job.StoreSnapshot(kServer1, 1);
    }
    job.RestartController();
    const auto actions = job.JoinAll("again");
    const bool closes = steps > 0;  // again: the data tier may have gone on
    EXPECT_EQ(job.state().step, closes ? Step::kClosing : Step::kTraining);
    EXPECT_THAT(Sent<OpenEpoch>(actions), SizeIs(closes ? 0 : 2));
    EXPECT_THAT(Sent<CloseEpoch>(actions), SizeIs(closes ? 2 : 0));
    EXPECT_THAT(Sent<TakeSnapshot>(actions), IsEmpty());
    EXPECT_THAT(Sent<Evaluate>(actions), IsEmpty());
    job.TrainAndEvaluate(70);
    ASSERT_THAT(job.results(), SizeIs(1));
    EXPECT_EQ(job.results()[0].counted, 90u);
    EXPECT_EQ(job.results()[0].snapshot, 1u);
  }
}

TEST(ReportTest, ShowsProgressFromHeartbeats) {
  Harness job;
  job.Begin();
  job.JoinAll();
  const auto report = [&](std::uint64_t counted) {
    Heartbeat data;
    data.progress =
        DataServerProgress{.epoch = 1, .counted_examples = counted, .total_examples = 1000};
    job.Tell(kData0, data);
    Heartbeat worker;
    worker.progress =
        WorkerProgress{.trained_examples = counted, .loss_sum = 0.5 * static_cast<double>(counted)};
    job.Tell(kWorker0, worker);
  };
  report(0);
  job.Pass(seconds(2));
  report(200);
  const JobReport shown = job.controller().Report();
  EXPECT_EQ(shown.counted_examples, 200u);
  EXPECT_EQ(shown.total_examples, 1000u);
  EXPECT_DOUBLE_EQ(shown.examples_per_second, 100);
  EXPECT_DOUBLE_EQ(shown.training_loss, 0.5);
  EXPECT_EQ(shown.members.size(), 6u);
}

}  // namespace
}  // namespace adamant::controller
