#include "operator/core/job/start_deadline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "operator/core/job/job_controller.h"
#include "operator/core/processes/start_watch.h"
#include "operator/core/state/number_text.h"
#include "tests/unit/operator/core/job/harness.h"
#include "tests/unit/operator/core/job/job_parts.h"

namespace adamant::controller {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

JobSettings Hurried(OnStartDeadline then = OnStartDeadline::kRelease) {
  JobSettings settings = SmallJob();
  settings.start_deadline = minutes(1);
  settings.on_start_deadline = then;
  settings.join_timeout = minutes(15);
  return settings;
}

// All but worker-1 and parameter-server-1 run.
void HalfStart(Harness& job) {
  job.Begin();
  for (const SlotId id : {kData0, kData1, kServer0, kWorker0}) {
    job.Join(id, ToString(id));
  }
  job.ReportDisk(0);
}

/// All processes have ended, as they were told to.
std::vector<Action> EndAll(Harness& job) {
  Harness::Actions all = job.Pass(seconds(1));
  for (std::size_t i = 0; i < job.state().slots.size(); ++i) {
    Harness::Append(all, job.Exit(SlotAt(SmallJob(), i)));
  }
  Harness::Append(all, job.Pass(seconds(4)));
  return all;
}

TEST(StartDeadlineTest, AHalfStartedJobReleasesItsProcessesAndNamesThoseThatItLacked) {
  Harness job(Hurried());
  HalfStart(job);
  EXPECT_THAT(Pick<Note>(job.Pass(seconds(59))), IsEmpty());
  const auto actions = job.Pass(seconds(1));
  EXPECT_THAT(Pick<Note>(actions),
              Contains(AllOf(Field(&Note::kind, Note::Kind::kReleased),
                             Field(&Note::text,
                                   HasSubstr("startDeadline, 60 s, the job could not start: "
                                             "parameter-server-1 and 1 other did not join")))));
  EXPECT_EQ(job.state().phase, Phase::kSuspended);
  EXPECT_TRUE(job.state().released);
  EXPECT_TRUE(job.controller().Report().released);
  const auto after = EndAll(job);
  EXPECT_THAT(Pick<Finished>(after), SizeIs(1));
  EXPECT_THAT(job.controller().Wanted(), IsEmpty());
  ASSERT_TRUE(job.controller().BeginsAgainAt().has_value());
  EXPECT_GT(*job.controller().BeginsAgainAt(), job.now() - seconds(5));
  EXPECT_LE(*job.controller().BeginsAgainAt(), job.now() + seconds(15));
}

TEST(StartDeadlineTest, AReleasedJobBeginsAgainWithTheBudgetThatItHad) {
  Harness job(Hurried());
  HalfStart(job);
  job.Exit(kWorker0);
  ASSERT_EQ(job.state().restarts, 1u);
  job.Pass(minutes(1), {kWorker0});
  ASSERT_TRUE(job.state().released);
  EndAll(job);
  job.RestartController({.others = false});
  EXPECT_EQ(job.state().phase, Phase::kStarting);
  EXPECT_FALSE(job.state().released);
  EXPECT_EQ(job.state().releases, 1u);
  EXPECT_EQ(job.state().restarts, 1u);
  EXPECT_EQ(job.state().starts, 2u);
  EXPECT_FALSE(job.controller().BeginsAgainAt().has_value());
  job.JoinAll("again");
  EXPECT_EQ(job.state().phase, Phase::kRunning);
  EXPECT_EQ(job.state().releases, 0u);
}

TEST(StartDeadlineTest, WhereTheUserWantsItTheJobFails) {
  Harness job(Hurried(OnStartDeadline::kFail));
  HalfStart(job);
  job.Pass(minutes(1));
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("spec.runPolicy.startDeadline, 60 s"));
  EXPECT_FALSE(job.state().released);
}

TEST(StartDeadlineTest, TheMessageCountsThePodsByRoleAndSaysWhyTheFirstIsMissing) {
  Harness job(Hurried(OnStartDeadline::kFail));
  HalfStart(job);
  job.Handle(ProcessesWait{.processes = {{.id = kWorker1, .generation = 1}},
                           .why = {{kWorker0, "of one that has joined"},
                                   {kWorker1, "0/3 nodes are available: 3 Insufficient cpu."}}});
  job.Pass(minutes(1));
  EXPECT_THAT(job.state().message,
              HasSubstr("parameter-server-1 and 1 other did not join (parameter-server: 1 of 2 "
                        "pods, worker: 1 of 2 pods); worker-1: 0/3 nodes are available: 3 "
                        "Insufficient cpu."));
}

TEST(StartDeadlineTest, ReadingTheDataDoesNotCount) {
  Harness job(Hurried());
  job.Begin();
  for (const SlotId id : {kData0, kData1, kServer0, kServer1, kWorker0, kWorker1}) {
    job.Join(id, ToString(id));
  }
  job.Pass(minutes(5));
  EXPECT_EQ(job.state().phase, Phase::kStarting);
}

TEST(StartDeadlineTest, AJobThatTrainsWaitsForAWorkerAsLongAsItTakes) {
  Harness job(Hurried());
  job.Begin();
  job.JoinAll();
  ASSERT_EQ(job.state().phase, Phase::kRunning);
  job.Exit(kWorker1);
  job.Pass(minutes(5), {kWorker1});
  EXPECT_EQ(job.state().phase, Phase::kRunning);
}

TEST(StartDeadlineTest, WithoutADeadlineAJobWaits) {
  JobSettings settings = Hurried();
  settings.start_deadline.reset();
  Harness job(settings);
  HalfStart(job);
  job.Pass(minutes(10));
  EXPECT_EQ(job.state().phase, Phase::kStarting);
}

TEST(StartDeadlineTest, ADeadlineThatIsChangedCounts) {
  JobSettings settings = Hurried();
  Harness job(settings);
  HalfStart(job);
  job.Pass(seconds(30));
  settings.start_deadline = seconds(20);
  job.Change(settings);
  EXPECT_TRUE(job.state().released);
}

// A job whose processes are missing since now.
class ReleaseTest : public JobParts {
 protected:
  ReleaseTest() {
    settings_.start_deadline = minutes(1);
    deadline_.Check(false, now_);
  }

  StartDeadline deadline_{settings_, state_, outbox_, processes_, outcome_};
};

TEST_F(ReleaseTest, OneIsLookedForAtTheDeadlineUntilTrainingBegins) {
  EXPECT_EQ(deadline_.NextTimer(), now_ + minutes(1));
  deadline_.Check(false, now_ + seconds(59));
  EXPECT_FALSE(outcome_.IsDecided());
  deadline_.Check(true, now_ + minutes(1));
  EXPECT_FALSE(outcome_.IsDecided());
  EXPECT_EQ(deadline_.NextTimer(), std::nullopt);
}

TEST_F(ReleaseTest, TheJobBeginsAgainAfterItsWaitOnceItsProcessesHaveEnded) {
  deadline_.Check(false, now_ + minutes(1));
  ASSERT_TRUE(state_.released);
  EXPECT_EQ(deadline_.BeginsAgainAt(), std::nullopt);
  deadline_.OnEnded(now_ + minutes(2));
  EXPECT_EQ(deadline_.BeginsAgainAt(), now_ + minutes(2) + ReleaseWait(state_.job_uid, 1));
}

TEST_F(ReleaseTest, AJobThatFailsAtTheDeadlineDoesNotBeginAgain) {
  settings_.on_start_deadline = OnStartDeadline::kFail;
  deadline_.Check(false, now_ + minutes(1));
  deadline_.OnEnded(now_ + minutes(2));
  EXPECT_EQ(deadline_.BeginsAgainAt(), std::nullopt);
}

TEST_F(ReleaseTest, EachInARowIsCountedAndTellsItsOwnWait) {
  state_.releases = 4;
  deadline_.Check(false, now_ + minutes(1));
  EXPECT_EQ(state_.releases, 5u);
  EXPECT_THAT(state_.message,
              HasSubstr("tries again " + SecondsText(ReleaseWait(state_.job_uid, 5)) +
                        " after they have ended"));
}

TEST_F(ReleaseTest, OnceTrainingHasBegunThoseBeforeCountNoMoreWhichIsStoredOnce) {
  state_.releases = 4;
  deadline_.Check(true, now_);
  EXPECT_EQ(state_.releases, 0u);
  EXPECT_THAT(Pick<Persist>(Take()), SizeIs(1));
  deadline_.Check(true, now_);
  EXPECT_THAT(Take(), IsEmpty());
}

TEST(ReleaseWaitTest, GrowsToTenMinutesAndIsAnotherForEachJob) {
  std::set<std::int64_t> waits;
  for (std::uint64_t uid = 1; uid <= 100; ++uid) {
    const auto wait = ReleaseWait(uid, 1);
    EXPECT_GE(wait, seconds(5));
    EXPECT_LT(wait, seconds(15));
    waits.insert(wait.count());
    EXPECT_EQ(ReleaseWait(uid, 1), wait);
    EXPECT_GE(ReleaseWait(uid, 4), seconds(40));
    EXPECT_LT(ReleaseWait(uid, 1000), minutes(15));
    EXPECT_GE(ReleaseWait(uid, 1000), minutes(5));
  }
  EXPECT_THAT(waits, SizeIs(testing::Gt(90u)));
}

// --- Jobs whose processes are started together

JobSettings Gang() {
  JobSettings settings = SmallJob();
  settings.training_examples = 0;
  settings.starts_together = true;
  return settings;
}

TEST(StartTogetherTest, AllProcessesAreAskedForThoughNobodyKnowsHowLongTheJobIs) {
  Harness job(Gang());
  EXPECT_THAT(Pick<StartProcess>(job.Begin()), SizeIs(6));
}

TEST(StartTogetherTest, WhoMustKnowHowLongTheJobIsAsksUntilThatIsKnown) {
  Harness job(Gang());
  job.Begin();
  for (int i = 0; i < 3; ++i) {
    job.Pass(seconds(50), {kWorker0});
    const auto actions = job.Join(kWorker0, "w");
    EXPECT_THAT(Pick<Send>(actions), IsEmpty());
    EXPECT_THAT(Pick<CloseConnection>(actions), SizeIs(1));
    EXPECT_EQ(job.GenerationOf(kWorker0), 1u) << "it is not silent";
  }
  job.Join(kData0, "d");
  job.Tell(kData0, Heartbeat{.progress = DataServerProgress{.training_examples = 70}});
  const auto welcome = Sent<Welcome>(job.Join(kWorker0, "w"));
  ASSERT_THAT(welcome, SizeIs(1));
  EXPECT_EQ(welcome[0].second.training_examples, 70u);
}

}  // namespace
}  // namespace adamant::controller
