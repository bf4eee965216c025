#include "operator/core/job_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/unit/operator/core/harness.h"

namespace adamant::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(StartTest, EveryProcessIsStartedUnderTermOneWhichIsStoredFirst) {
  Harness job;
  const auto actions = job.Begin();
  ASSERT_TRUE(std::holds_alternative<Persist>(actions.front()));
  EXPECT_THAT(Pick<StartProcess>(actions), SizeIs(6));
  EXPECT_EQ(job.state().term, 1u);
  EXPECT_EQ(job.state().phase, Phase::kStarting);
}

TEST(StartTest, MembersGetWelcomeThenMembershipWithTheirIncarnation) {
  Harness job;
  job.Begin();
  const auto sends = Pick<Send>(job.Join(kWorker0, "a"));
  ASSERT_THAT(sends, SizeIs(2));
  const auto& welcome = std::get<Welcome>(sends[0].message);
  EXPECT_EQ(welcome.incarnation, 1u);
  EXPECT_EQ(welcome.job_uid, 42u);
  const auto& view = std::get<Membership>(sends[1].message);
  ASSERT_THAT(view.members, SizeIs(1));
  EXPECT_EQ(view.members[0].id, kWorker0);
  EXPECT_THAT(view.buckets, IsEmpty());
}

TEST(StartTest, BucketsAreSpreadOnceAllParameterServersHaveJoined) {
  Harness job;
  job.Begin();
  job.Join(kServer0, "a");
  EXPECT_THAT(job.state().buckets, IsEmpty());
  job.Join(kServer1, "b");
  ASSERT_THAT(job.state().buckets, SizeIs(4));
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(job.state().buckets[i], (Bucket{.epoch = 1, .primary = i % 2, .created = false}));
  }
}

TEST(StartTest, TheEpochOpensOnlyWhenBucketsDataServersAndAWorkerAreReady) {
  Harness job;
  job.Begin();
  job.Join(kServer0, "a");
  job.Join(kServer1, "b");
  job.Join(kData0, "c");
  job.Join(kData1, "d");
  job.BucketsAreReady(0);
  job.BucketsAreReady(1);
  job.Join(kWorker1, "e");
  job.Tell(kWorker1, Heartbeat{});
  job.Tell(kData0, Heartbeat{});
  EXPECT_EQ(job.state().phase, Phase::kStarting);  // data-server-1 still loads
  const auto opened = Sent<OpenEpoch>(job.Tell(kData1, Heartbeat{}));
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 1u);
  EXPECT_EQ(job.state().phase, Phase::kRunning);
}

TEST(StartTest, CreatedBucketsAreStoredAndPublished) {
  Harness job;
  job.Begin();
  job.Join(kServer0, "a");
  job.Join(kServer1, "b");
  const auto actions = job.BucketsAreReady(0);
  ASSERT_TRUE(std::holds_alternative<Persist>(actions.front()));
  const auto views = Sent<Membership>(actions);
  ASSERT_THAT(views, SizeIs(2));
  EXPECT_TRUE(views[0].second.buckets[0].created);
  EXPECT_FALSE(views[0].second.buckets[1].created);
}

TEST(JoinTest, OtherFormatVersionsAndUnknownSlotsAreRefused) {
  Harness job;
  job.Begin();
  Join join;
  join.format_version = 9;
  join.uid = "x";
  auto refused = Sent<Refused>(job.Handle(Received{50, join}));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused[0].second.reason, HasSubstr("version 9"));
  EXPECT_THAT(refused[0].second.reason, HasSubstr("speaks 1"));

  refused = Sent<Refused>(job.Join({Role::kWorker, 7}, "y"));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused[0].second.reason, HasSubstr("no worker-7"));
}

TEST(JoinTest, AReconnectKeepsItsIncarnationAndANewProcessGetsAHigherOne) {
  Harness job;
  job.Begin();
  job.Join(kWorker0, "a");
  EXPECT_EQ(Sent<Welcome>(job.Join(kWorker0, "a", 1))[0].second.incarnation, 1u);
  EXPECT_EQ(Sent<Welcome>(job.Join(kWorker0, "b"))[0].second.incarnation, 2u);
}

TEST(JoinTest, AProcessWhoseSlotWasTakenIsRefused) {
  Harness job;
  job.Begin();
  job.Join(kWorker0, "a");
  const ConnectionId old = job.ConnectionOf(kWorker0);
  const auto taken = Sent<Refused>(job.Join(kWorker0, "b"));
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].first, old);
  EXPECT_THAT(Sent<Refused>(job.Join(kWorker0, "a", 1)), SizeIs(1));
  EXPECT_THAT(Sent<Welcome>(job.Join(kWorker0, "b", 2)), SizeIs(1));
}

TEST(JoinTest, MembersOfBeforeAreRecognisedByARestartedController) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.RestartController();
  const auto welcome = Sent<Welcome>(job.Join(kWorker1, "worker-1", 1));
  ASSERT_THAT(welcome, SizeIs(1));
  EXPECT_EQ(welcome[0].second.incarnation, 1u);
  EXPECT_EQ(welcome[0].second.term, 2u);
}

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
  EXPECT_THAT(Pick<Export>(job.Pass(EpochSequence::kSnapshotRetry)), SizeIs(1));
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
  for (int i = 1; i < EpochSequence::kSnapshotTries; ++i) {
    job.Tell(kServer0, failed);
    job.Tell(kServer1, failed);  // counts with the other one
    EXPECT_THAT(Sent<TakeSnapshot>(job.Pass(EpochSequence::kSnapshotRetry)), SizeIs(2));
    EXPECT_NE(job.state().phase, Phase::kFailed);
  }
  job.Tell(kServer0, failed);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("disk full"));
}

TEST(SnapshotTest, CheckpointsAreTakenWithinAnEpochAndDoNotDisturbIt) {
  JobSettings settings = SmallJob();
  settings.checkpoint_interval = seconds(5);
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  const auto asked = Sent<TakeSnapshot>(job.Pass(seconds(5)));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_EQ(asked[0].second.snapshot, 1u);
  job.StoreSnapshot(kServer0, 1);
  job.StoreSnapshot(kServer1, 1);
  EXPECT_EQ(job.state().complete_snapshot, 1u);
  EXPECT_EQ(job.state().step, Step::kTraining);
  EXPECT_THAT(Sent<TakeSnapshot>(job.Pass(seconds(5))), SizeIs(2));  // 2, never finished
  job.TrainAndEvaluate(50);
  EXPECT_EQ(job.state().evaluated_snapshot, 3u);
  EXPECT_EQ(job.state().epoch, 2u);
}

TEST(LossTest, ADeadWorkerIsNotWaitedForAndStartsAgainAfterTheBackoff) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  const auto lost = job.Exit(kWorker1);
  EXPECT_THAT(Sent<TakeSnapshot>(lost), SizeIs(2));
  const auto views = Sent<Membership>(lost);
  EXPECT_TRUE(std::none_of(views[0].second.members.begin(),
                           views[0].second.members.end(),
                           [](const Member& member) { return member.id == kWorker1; }));
  EXPECT_THAT(Pick<StartProcess>(job.Pass(milliseconds(999))), IsEmpty());
  EXPECT_THAT(Pick<StartProcess>(job.Pass(milliseconds(1))), SizeIs(1));
  EXPECT_THAT(Sent<FlushWorker>(job.Join(kWorker1, "new")), IsEmpty());
}

TEST(LossTest, PartsOfALostDataServerPassToAnotherAndReturnAtTheNextEpoch) {
  Harness job;
  job.Begin();
  job.JoinAll();
  const auto lost = job.Exit(kData0);
  EXPECT_THAT(job.state().part_owner, ElementsAre(1u, 1u));
  EXPECT_THAT(Sent<OpenEpoch>(lost), SizeIs(1));
  job.Pass(seconds(1), {kData0});
  EXPECT_THAT(Sent<OpenEpoch>(job.Join(kData0, "new")), SizeIs(1));
  EXPECT_THAT(job.state().part_owner, ElementsAre(1u, 1u));  // moving back would cost leases
  job.TrainAndEvaluate(50);
  EXPECT_THAT(job.state().part_owner, ElementsAre(0u, 1u));
}

TEST(LossTest, TheOnlyDataServerFindsItsPartAgain) {
  JobSettings settings = SmallJob();
  settings.data_servers = 1;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.Exit(kData0);
  job.Pass(seconds(1), {kData0});
  EXPECT_THAT(Sent<OpenEpoch>(job.Join(kData0, "new")), SizeIs(1));
}

TEST(LossTest, ARestartedParameterServerIsAskedForTheSnapshotAgain) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  job.Flush(kWorker1);
  job.StoreSnapshot(kServer0, 1);
  job.Exit(kServer1);
  job.Pass(seconds(1), {kServer1});
  EXPECT_THAT(Sent<TakeSnapshot>(job.Join(kServer1, "new")), SizeIs(1));
  EXPECT_THAT(Sent<Evaluate>(job.StoreSnapshot(kServer1, 1)), SizeIs(1));
}

TEST(LossTest, ALostBucketFailsTheJobWithTheServersMessage) {
  Harness job;
  job.Begin();
  job.JoinAll();
  BucketsReady report;
  report.buckets.push_back({.bucket = 2, .epoch = 1, .lost = true, .detail = "shard 7: checksum"});
  job.Tell(kServer0, report);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("bucket 2: shard 7: checksum"));
}

TEST(LossTest, ASilentMemberIsKilledAndReplaced) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Pass(seconds(1));
  auto actions = job.Pass(Roster::kSilenceTimeout, {kWorker0});
  const auto killed = Pick<KillProcess>(actions);
  ASSERT_THAT(killed, SizeIs(1));
  EXPECT_EQ(killed[0].id, kWorker0);
  Harness::Append(actions, job.Exit(kWorker0));  // its exit counts once
  Harness::Append(actions, job.Pass(seconds(2), {kWorker0}));
  EXPECT_THAT(Pick<StartProcess>(actions), SizeIs(1));
  EXPECT_EQ(job.state().restarts, 1u);
}

TEST(LossTest, AProcessThatNeverJoinsIsReplaced) {
  Harness job;
  job.Begin();
  job.Pass(Roster::kJoinTimeout - seconds(1));
  EXPECT_EQ(job.state().restarts, 0u);
  EXPECT_THAT(Pick<KillProcess>(job.Pass(seconds(1))), SizeIs(6));
}

TEST(LossTest, AMemberMayLoadForLongBeforeItsFirstHeartbeat) {
  Harness job;
  job.Begin();
  job.Join(kData0, "a");
  job.Pass(seconds(50), {kData0});
  EXPECT_EQ(job.state().restarts, 0u);
  job.Pass(seconds(1));
  EXPECT_THAT(Pick<KillProcess>(job.Pass(Roster::kSilenceTimeout + seconds(1), {kData0})),
              testing::Contains(testing::Field(&KillProcess::id, kData0)));
}

TEST(LossTest, ABrokenStreamAloneIsNoLoss) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Handle(Disconnected{job.ConnectionOf(kWorker0)});
  job.Pass(seconds(5));
  EXPECT_THAT(Sent<Welcome>(job.Join(kWorker0, "worker-0", 1)), SizeIs(1));
  job.Pass(seconds(20));
  EXPECT_EQ(job.state().restarts, 0u);
}

TEST(BudgetTest, TheDeathBeyondTheLimitFailsTheJobSayingWhoDied) {
  JobSettings settings = SmallJob();
  settings.restart_limit = 1;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.Exit(kWorker0);
  EXPECT_EQ(job.state().phase, Phase::kRunning);
  job.Exit(kServer0, "exited with code 1");
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("parameter-server-0 exited with code 1"));
  EXPECT_THAT(job.state().message, HasSubstr("budget of 1"));
}

TEST(BudgetTest, BackoffDoublesPerSlotUpToAMinute) {
  EXPECT_EQ(RestartDelay(seconds(1), 0), seconds(1));
  EXPECT_EQ(RestartDelay(seconds(1), 3), seconds(8));
  EXPECT_EQ(RestartDelay(seconds(1), 100), seconds(60));
  EXPECT_EQ(RestartDelay(seconds(0), 100), seconds(0));
}

TEST(BudgetTest, AUserWhoResumesAFailedJobGetsAFreshBudget) {
  JobSettings settings = SmallJob();
  settings.restart_limit = 0;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.Exit(kWorker0);
  ASSERT_EQ(job.state().phase, Phase::kFailed);
  job.RestartController();
  EXPECT_EQ(job.state().phase, Phase::kStarting);
  EXPECT_THAT(Sent<OpenEpoch>(job.JoinAll("again")), SizeIs(2));
  EXPECT_EQ(job.state().phase, Phase::kRunning);
}

TEST(BudgetTest, RefusedConfigurationFailsAtOnce) {
  Harness job;
  job.Begin();
  job.Handle(ProcessExited{
      .id = kWorker0, .generation = 1, .how = "exited with code 2", .bad_configuration = true});
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("worker-0 exited with code 2"));
}

TEST(FailureTest, AFatalFailureEndsTheJobWithItsMessageAndAnotherDoesNot) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Tell(kWorker0, Failure{.message = "cannot reach", .fatal = false});
  EXPECT_EQ(job.state().phase, Phase::kRunning);
  job.Tell(kWorker0, Failure{.message = "loss is NaN; lower the rate", .fatal = true});
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_EQ(job.state().message, "worker-0: loss is NaN; lower the rate");
}

TEST(FailureTest, AnAlarmThatLastsFailsTheJobAndOneThatPassesDoesNot) {
  Harness job;
  job.Begin();
  job.JoinAll();
  Heartbeat full;
  full.progress = ParameterServerProgress{.alarm = "disk full"};
  Heartbeat fine;
  fine.progress = ParameterServerProgress{.alarm = ""};
  job.Tell(kServer0, full);
  job.Pass(JobController::kAlarmTimeout / 2);
  job.Tell(kServer0, fine);
  job.Pass(JobController::kAlarmTimeout / 2);
  job.Tell(kServer0, full);
  EXPECT_EQ(job.state().phase, Phase::kRunning);
  job.Pass(JobController::kAlarmTimeout);
  job.Tell(kServer0, full);
  EXPECT_EQ(job.state().message, "parameter-server-0: disk full");
}

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
}

TEST(DeadlineTest, TheControllerAsksToBeWokenInTime) {
  JobSettings settings = SmallJob();
  settings.epoch_deadline = seconds(5);
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  EXPECT_EQ(job.controller().NextTimer(job.now()), job.now() + seconds(5));
}

TEST(EndTest, RolesLeaveInOrderAndTheLastExitFinishesTheJob) {
  Harness job;
  job.Begin();
  job.JoinAll();
  EXPECT_THAT(Sent<Stop>(job.Handle(SuspendRequested{"interrupted"})), SizeIs(2));
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
  job.Handle(SuspendRequested{"interrupted"});
  const auto end = job.Pass(milliseconds(2900));
  EXPECT_THAT(Pick<KillProcess>(end), SizeIs(6));
  EXPECT_THAT(Pick<Finished>(end), SizeIs(1));
}

TEST(EndTest, ASuspendedJobGoesOnInTheSameEpoch) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(50);
  job.Handle(SuspendRequested{"interrupted"});
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
    const Step before = job.state().step;
    job.RestartController();
    const auto actions = job.JoinAll("again");
    EXPECT_EQ(job.state().step, before);
    EXPECT_THAT(Sent<OpenEpoch>(actions), SizeIs(steps == 0 ? 2 : 0));
    EXPECT_THAT(Sent<CloseEpoch>(actions), SizeIs(steps == 1 ? 2 : 0));
    EXPECT_THAT(Sent<TakeSnapshot>(actions), SizeIs(steps == 3 ? 2 : 0));
    EXPECT_THAT(Sent<Evaluate>(actions), SizeIs(steps == 4 ? 1 : 0));
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
