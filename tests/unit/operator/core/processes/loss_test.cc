#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

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

TEST(LossTest, TheEndOfAProcessThatWasGivenUpIsAwaitedUntilItIsTold) {
  Harness job;
  job.Begin();
  job.JoinAll();
  EXPECT_THAT(job.controller().processes().AwaitedEnds(), IsEmpty());
  job.Pass(SmallJob().silence_timeout, {kWorker0});
  EXPECT_THAT(job.controller().processes().AwaitedEnds(), ElementsAre(StartProcess{kWorker0, 1}));
  job.Exit(kWorker0);
  EXPECT_THAT(job.controller().processes().AwaitedEnds(), IsEmpty());
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
  job.ReplaceServer(1, "new");
  job.Flush(kWorker0);  // again: its bucket has lost all replicas
  EXPECT_THAT(Sent<TakeSnapshot>(job.Flush(kWorker1)), SizeIs(2));
  job.StoreSnapshot(kServer0, 1);
  EXPECT_THAT(Sent<Evaluate>(job.StoreSnapshot(kServer1, 1)), SizeIs(1));
}

TEST(LossTest, WorkersFlushAgainWhatWasRolledBackWhileTheyFlushed) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Tell(kData0, EpochEnded{1});
  job.CloseParts();
  job.Flush(kWorker0);
  job.Exit(kServer1);
  job.Pass(seconds(1), {kServer1});
  job.ReplaceServer(1, "new");
  const auto flushed = job.Flush(kWorker1);
  EXPECT_THAT(Sent<FlushWorker>(flushed), SizeIs(2)) << "what worker-0 had flushed was lost";
  EXPECT_THAT(Sent<TakeSnapshot>(flushed), IsEmpty());
  job.Flush(kWorker0);
  EXPECT_THAT(Sent<TakeSnapshot>(job.Flush(kWorker1)), SizeIs(2));
}

TEST(LossTest, ADamagedDiskIsToldThoughOtherCopiesMakeUpForIt) {
  Harness job;
  job.Begin();
  for (const SlotId id : {kServer0, kServer1}) {
    job.Join(id, ToString(id));
  }
  StoredBuckets stored{.buckets = {{.bucket = 0, .complete = true},
                                   {.bucket = 1, .complete = false, .detail = "4.log: is damaged"},
                                   {.bucket = 3, .complete = false, .detail = "other"}}};
  const auto notes = Pick<Note>(job.Tell(kServer1, stored));
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_EQ(notes[0].kind, Note::Kind::kAlarm);
  EXPECT_EQ(notes[0].text,
            "parameter-server-1: 2 buckets on its disk are not used: 4.log: is damaged");
  EXPECT_THAT(Pick<Note>(job.Tell(kServer1, stored)), testing::IsEmpty()) << "once is enough";
  stored.buckets.resize(2);
  stored.buckets[1].detail = "5.log: is damaged";
  EXPECT_THAT(
      Pick<Note>(job.Tell(kServer1, stored)),
      testing::ElementsAre(testing::Field(
          &Note::text, "parameter-server-1: 1 bucket on its disk is not used: 5.log: is damaged")));
  stored.buckets.resize(1);
  EXPECT_THAT(Pick<Note>(job.Tell(kServer1, stored)), testing::IsEmpty());
}

TEST(LossTest, DamageThatAServerFindsWhileItRunsIsToldOnceForEachFile) {
  Harness job;
  job.Begin();
  job.JoinAll();
  const auto beat = [&](std::vector<std::string> damages) {
    ParameterServerProgress progress;
    progress.damages = std::move(damages);
    return Pick<Note>(job.Tell(kServer1, Heartbeat{.progress = progress}));
  };
  const auto alarm = [](const std::string& damage) {
    return testing::AllOf(
        testing::Field(&Note::kind, Note::Kind::kAlarm),
        testing::Field(&Note::text, "parameter-server-1: its disk is damaged: " + damage));
  };
  EXPECT_THAT(beat({"1.segment: missing"}), testing::ElementsAre(alarm("1.segment: missing")));
  EXPECT_THAT(beat({"1.segment: missing", "2.segment: cut"}),
              testing::ElementsAre(alarm("2.segment: cut")));
  EXPECT_THAT(beat({"1.segment: missing", "2.segment: cut"}), testing::IsEmpty());
  job.Exit(kServer1);
  job.Pass(seconds(1), {kServer1});
  job.ReplaceServer(1, "new");
  EXPECT_THAT(beat({"1.segment: missing"}), testing::Contains(alarm("1.segment: missing")))
      << "of another process";
}

TEST(LossTest, ALostBucketFailsTheJobWithTheServersMessage) {
  Harness job;
  job.Begin();
  job.JoinAll();
  BucketsReady report;
  report.buckets.push_back(
      {.bucket = 2, .configuration_version = 1, .lost = true, .detail = "shard 7: checksum"});
  job.Tell(kServer0, report);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("bucket 2 is lost"));
}

TEST(LossTest, ASilentMemberIsKilledAndReplaced) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Pass(seconds(1));
  auto actions = job.Pass(SmallJob().silence_timeout, {kWorker0});
  const auto killed = Pick<KillProcess>(actions);
  ASSERT_THAT(killed, SizeIs(1));
  EXPECT_EQ(killed[0].id, kWorker0);
  Harness::Append(actions, job.Exit(kWorker0));  // its exit counts once
  Harness::Append(actions, job.Pass(seconds(2), {kWorker0}));
  EXPECT_THAT(Pick<StartProcess>(actions), SizeIs(1));
  EXPECT_EQ(job.state().restarts, 1u);
}

// A node falls silent before it counts as lost.
TEST(LossTest, WhyAMemberWasSilentIsJudgedWhenItsEndIsKnown) {
  JobSettings settings = SmallJob();
  settings.restart_limit = 0;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.Pass(settings.silence_timeout + seconds(1), {kWorker0});
  EXPECT_EQ(job.state().phase, Phase::kRunning);
  auto actions = job.Handle(ProcessExited{.id = kWorker0,
                                          .generation = 1,
                                          .how = "is given up: its node is lost",
                                          .proved = false,
                                          .cause = LossCause::kNodeLost});
  EXPECT_THAT(Pick<StartProcess>(actions), ElementsAre(StartProcess{kWorker0, 2}));
  EXPECT_EQ(job.state().phase, Phase::kRunning);
}

TEST(LossTest, AMemberThatIsBusyWithOneThingForTooLongIsReplaced) {
  const std::vector<std::pair<SlotId, Heartbeat>> members = {
      {kWorker0, {.progress = WorkerProgress{}}},
      {kData0, {.progress = DataServerProgress{}}},
      {kServer0, {.progress = ParameterServerProgress{}}}};
  for (auto [id, heartbeat] : members) {
    Harness job;
    job.Begin();
    job.JoinAll();
    heartbeat.busy_seconds = 119.9;
    EXPECT_THAT(Pick<KillProcess>(job.Tell(id, heartbeat)), IsEmpty());
    heartbeat.busy_seconds = 120;
    auto actions = job.Tell(id, heartbeat);
    ASSERT_THAT(Pick<KillProcess>(actions), SizeIs(1));
    EXPECT_EQ(Pick<KillProcess>(actions)[0].id, id);
    EXPECT_THAT(Pick<Note>(actions),
                testing::Contains(
                    Field(&Note::text, HasSubstr(ToString(id) + " made no progress for 120 s"))));
    job.Exit(id);
    EXPECT_EQ(job.state().restarts, 1u);
    EXPECT_THAT(Pick<StartProcess>(job.Pass(seconds(2), {id})), SizeIs(1));
  }
}

TEST(LossTest, AProcessThatNeverJoinsIsReplaced) {
  Harness job;
  job.Begin();
  job.Pass(SmallJob().join_timeout - seconds(1));
  EXPECT_EQ(job.state().restarts, 0u);
  EXPECT_THAT(Pick<KillProcess>(job.Pass(seconds(1))), SizeIs(6));
}

TEST(LossTest, AProcessThatWaitsForRoomHasItsTimeToJoinWhenItHasGotIt) {
  Harness job;
  job.Begin();
  job.Pass(SmallJob().join_timeout - seconds(1));
  job.Handle(ProcessesWait{{{kWorker0, 1}, {kWorker1, 7}}});
  const auto killed = Pick<KillProcess>(job.Pass(SmallJob().join_timeout - seconds(1)));
  EXPECT_THAT(killed, SizeIs(5)) << "all but worker-0; there is no worker-1 of generation 7";
  EXPECT_THAT(killed, testing::Not(testing::Contains(Field(&KillProcess::id, kWorker0))));
  EXPECT_THAT(Pick<KillProcess>(job.Pass(seconds(1))),
              testing::Contains(Field(&KillProcess::id, kWorker0)));
}

TEST(LossTest, AMemberMayLoadForLongBeforeItsFirstHeartbeat) {
  Harness job;
  job.Begin();
  job.Join(kData0, "a");
  job.Pass(seconds(50), {kData0});
  EXPECT_EQ(job.state().restarts, 0u);
  job.Pass(seconds(1));
  EXPECT_THAT(Pick<KillProcess>(job.Pass(SmallJob().silence_timeout + seconds(1), {kData0})),
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

TEST(BudgetTest, WhatAProcessSaidLastIsToldOnce) {
  for (const char* how : {"exited with code 4", "exited with code 4: program: no memory"}) {
    JobSettings settings = SmallJob();
    settings.restart_limit = 0;
    Harness job(settings);
    job.Begin();
    job.JoinAll();
    job.Tell(kWorker0, Failure{.message = "no memory"});
    job.Exit(kWorker0, how);
    const std::string& message = job.state().message;
    const auto first = message.find("no memory");
    ASSERT_NE(first, std::string::npos) << message;
    EXPECT_EQ(message.find("no memory", first + 1), std::string::npos) << message;
  }
}

TEST(BudgetTest, BackoffDoublesPerSlotUpToAMinute) {
  EXPECT_EQ(RestartDelay(seconds(1), 0), seconds(1));
  EXPECT_EQ(RestartDelay(seconds(1), 3), seconds(8));
  EXPECT_EQ(RestartDelay(seconds(1), 100), seconds(60));
  EXPECT_EQ(RestartDelay(seconds(0), 100), seconds(0));
}

// How long nobody is started after a process that ends; the one that is then joins as `next`.
Clock::Duration WaitAfterExit(Harness& job, const std::string& next) {
  job.Exit(kWorker0);
  const auto before = job.now();
  while (Pick<StartProcess>(job.Pass(milliseconds(100), {kWorker0})).empty()) {
  }
  const auto waited = job.now() - before;
  job.Join(kWorker0, next);
  return waited;
}

TEST(BudgetTest, BackoffBeginsAnewAfterAProcessRanWell) {
  Harness job;
  job.Begin();
  job.JoinAll();
  const auto die = [&](const std::string& next) { return WaitAfterExit(job, next); };
  EXPECT_EQ(die("a"), seconds(1));
  EXPECT_EQ(die("b"), seconds(2));
  job.Pass(seconds(19));
  EXPECT_EQ(die("c"), seconds(4)) << "the one before had waited for 2 s";
  job.Pass(seconds(40));
  EXPECT_EQ(die("d"), seconds(1));
  job.Pass(seconds(10));
  EXPECT_EQ(die("e"), seconds(1)) << "as long as processes run";
  EXPECT_EQ(job.state().restarts, 5u) << "the budget is the job's, and stays spent";
}

TEST(BudgetTest, TheWaitAfterAProcessThatCameUpIsAtMostAQuarterOfItsTime) {
  Harness job;
  job.Begin();
  job.JoinAll();
  const auto die_after = [&](milliseconds ran, const std::string& next) {
    job.Pass(ran);
    return WaitAfterExit(job, next);
  };
  EXPECT_EQ(die_after(seconds(1), "a"), seconds(1));
  EXPECT_EQ(die_after(seconds(1), "b"), seconds(2));
  EXPECT_EQ(die_after(seconds(1), "c"), seconds(4));
  EXPECT_EQ(die_after(milliseconds(4'900), "d"), seconds(8)) << "it had not come up";
  EXPECT_EQ(die_after(seconds(9), "e"), seconds(2));
  EXPECT_EQ(die_after(seconds(9), "f"), seconds(2)) << "and so it stays, killed every 11 s";
  EXPECT_EQ(die_after(seconds(5), "g"), seconds(1));
  EXPECT_EQ(die_after(seconds(1), "h"), seconds(2)) << "one that does not come up waits for longer";
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

// What servers say while one of them cannot store.
class AlarmTest : public testing::Test {
 protected:
  AlarmTest() {
    job_.Begin();
    job_.JoinAll();
  }

  Harness::Actions Alarm(const std::string& alarm) {
    Heartbeat heartbeat;
    heartbeat.progress = ParameterServerProgress{.alarm = alarm};
    return job_.Tell(kServer0, heartbeat);
  }

  void Count(std::uint64_t examples) {
    Heartbeat heartbeat;
    heartbeat.progress =
        DataServerProgress{.epoch = 1, .counted_examples = examples, .total_examples = 1000};
    job_.Tell(kData0, heartbeat);
  }

  [[nodiscard]] std::string Shown() const {
    for (const auto& member : job_.controller().Report().members) {
      if (member.id == kServer0) {
        return member.alarm;
      }
    }
    return "no such member";
  }

  Harness job_;
};

TEST_F(AlarmTest, IsToldOnceAndShownUntilItIsOver) {
  EXPECT_THAT(Pick<Note>(Alarm("disk full")),
              ElementsAre(Field(&Note::text, "parameter-server-0: disk full; training goes on")));
  EXPECT_THAT(Pick<Note>(Alarm("disk full")), IsEmpty());
  EXPECT_EQ(Shown(), "disk full");
  EXPECT_THAT(Pick<Note>(Alarm("")),
              ElementsAre(Field(&Note::text, "parameter-server-0: stores again")));
  EXPECT_EQ(Shown(), "");
}

TEST_F(AlarmTest, SaysThatAJobWaitsThatHasNotBegun) {
  job_.RestartController();
  job_.Join(kServer0, "new");
  EXPECT_THAT(Pick<Note>(Alarm("disk full")),
              Contains(Field(&Note::text, HasSubstr("disk full; the job waits for room"))));
}

TEST(AlarmBeforeTheStartTest, IsToldAgainEachMinute) {
  Harness job;
  job.Begin();
  job.Join(kServer0, "server");
  Heartbeat heartbeat;
  heartbeat.progress = ParameterServerProgress{.alarm = "disk full"};
  std::vector<std::string> told;
  for (int i = 0; i < 130; ++i) {
    for (const Note& note : Pick<Note>(job.Tell(kServer0, heartbeat))) {
      if (note.kind == Note::Kind::kAlarm) {
        told.push_back(note.text);
      }
    }
    job.Pass(seconds(1), {kServer0});
  }
  const std::string text = "parameter-server-0: disk full; the job waits for room";
  EXPECT_THAT(told, ElementsAre(text, text + ", for 60 s now", text + ", for 120 s now"));
}

TEST_F(AlarmTest, DoesNotEndTrainingThatGoesOn) {
  for (std::uint64_t examples = 1; examples < 10; ++examples) {
    Count(examples);
    Alarm("disk full");
    job_.Pass(DiskAlarms::kTimeout / 2);
    EXPECT_EQ(job_.state().phase, Phase::kRunning);
  }
}

TEST_F(AlarmTest, EndsAJobThatCannotCountAnythingAnyMore) {
  Count(5);
  Alarm("disk full");
  job_.Pass(DiskAlarms::kTimeout / 2);
  Count(6);
  Alarm("disk full");
  job_.Pass(DiskAlarms::kTimeout - seconds(1));
  Alarm("disk full");
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
  job_.Pass(seconds(1));
  Alarm("disk full");
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_EQ(job_.state().message, "parameter-server-0: disk full; nothing can be counted any more");
}

TEST_F(AlarmTest, DoesNotEndAJobOfWhichAControllerThatWasHeldUpHasHeardNothing) {
  Count(5);
  Alarm("disk full");
  job_.Sleep(DiskAlarms::kTimeout * 2);
  Alarm("disk full");
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
}

}  // namespace
}  // namespace adamant::controller
