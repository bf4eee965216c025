#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/job/job_controller.h"
#include "operator/core/training/checkpoint_taker.h"
#include "services/worker/core/sync/pushes/push_pause.h"
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

JobSettings JobWithCheckpoints() {
  JobSettings settings = SmallJob();
  settings.checkpoint_interval = seconds(5);
  return settings;
}

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    job_.Begin();
    job_.JoinAll();
  }

  Harness::Actions Pause(SlotId worker, Sequence sequence) {
    return job_.Tell(worker,
                     PushesPaused{.checkpoint = job_.state().last_snapshot, .sequence = sequence});
  }

  // The whole of one checkpoint.
  Harness::Actions TakeCheckpoint() {
    job_.Pass(seconds(5));
    Pause(kWorker0, 17);
    Pause(kWorker1, 23);
    const std::uint64_t snapshot = job_.state().last_snapshot;
    job_.StoreSnapshot(kServer0, snapshot);
    return job_.StoreSnapshot(kServer1, snapshot);
  }

  Harness job_{JobWithCheckpoints()};
};

TEST_F(CheckpointTest, ServersStoreWhenAllWorkersPauseAndThenPushesGoOn) {
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(seconds(5))), SizeIs(2));
  EXPECT_THAT(Sent<TakeSnapshot>(Pause(kWorker0, 17)), IsEmpty());
  const auto asked = Sent<TakeSnapshot>(Pause(kWorker1, 23));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_EQ(asked[0].second.snapshot, 1u);
  job_.Sleep(milliseconds(120));
  EXPECT_THAT(Sent<ResumePushes>(job_.StoreSnapshot(kServer0, 1)), IsEmpty());
  const auto done = job_.StoreSnapshot(kServer1, 1);
  EXPECT_THAT(Sent<ResumePushes>(done), SizeIs(2));
  const auto manifests = Pick<WriteManifest>(done);
  ASSERT_THAT(manifests, SizeIs(1));
  const Checkpoint& checkpoint = job_.state().checkpoint;
  EXPECT_EQ(checkpoint.snapshot, 1u);
  EXPECT_EQ(checkpoint.epoch, 1u);
  EXPECT_EQ(checkpoint.held, milliseconds(120));
  EXPECT_THAT(checkpoint.cuts,
              ElementsAre(PushCut{.worker = 0, .incarnation = 1, .sequence = 17},
                          PushCut{.worker = 1, .incarnation = 1, .sequence = 23}));
  EXPECT_THAT(checkpoint.buckets, SizeIs(4));
  EXPECT_EQ(checkpoint.buckets[3].slot, 1u);
  EXPECT_EQ(manifests[0].checkpoint.snapshot, 1u);
  EXPECT_EQ(job_.state().step, Step::kTraining);
  EXPECT_EQ(job_.controller().Report().checkpoint, 1u);
}

// What is pushed before a server has stored its buckets may be in them, and is not in the cut.
TEST_F(CheckpointTest, WorkersHoldUntilTheLastServerHasStored) {
  job_.Pass(seconds(5));
  EXPECT_THAT(Sent<ResumePushes>(Pause(kWorker0, 17)), IsEmpty());
  EXPECT_THAT(Sent<ResumePushes>(Pause(kWorker1, 23)), IsEmpty());
  EXPECT_THAT(Sent<ResumePushes>(job_.Pass(seconds(1))), IsEmpty());
  EXPECT_THAT(Sent<ResumePushes>(job_.StoreSnapshot(kServer0, 1)), IsEmpty());
  EXPECT_THAT(Sent<ResumePushes>(job_.Pass(seconds(1))), IsEmpty());
  EXPECT_THAT(Sent<ResumePushes>(job_.StoreSnapshot(kServer1, 1)), SizeIs(2));
}

TEST_F(CheckpointTest, ServersKeepACheckpointThatIsBeingCopiedUntilItIsLetGo) {
  TakeCheckpoint();  // the first, to which the job may go back
  TakeCheckpoint();
  job_.Handle(CheckpointsHeld{{2}});
  TakeCheckpoint();
  const auto keeps = [&] {
    job_.Pass(seconds(5));
    Pause(kWorker0, 17);
    const auto asked = Sent<TakeSnapshot>(Pause(kWorker1, 23));
    const std::uint64_t snapshot = job_.state().last_snapshot;
    job_.StoreSnapshot(kServer0, snapshot);
    job_.StoreSnapshot(kServer1, snapshot);
    return asked.empty() ? std::vector<std::uint64_t>() : asked[0].second.keep;
  };
  EXPECT_THAT(keeps(), Contains(2u));
  job_.Handle(CheckpointsHeld{});
  EXPECT_THAT(keeps(), testing::Not(Contains(2u)));
}

TEST_F(CheckpointTest, AWorkerThatDoesNotComeToRestEndsTheAttempt) {
  job_.Pass(seconds(5));
  Pause(kWorker0, 17);
  const auto actions = job_.Pass(CheckpointTaker::kPauseTime);
  EXPECT_THAT(Sent<ResumePushes>(actions), SizeIs(2));
  EXPECT_EQ(job_.state().checkpoint.snapshot, 0u);
  EXPECT_THAT(Sent<TakeSnapshot>(Pause(kWorker1, 23)), IsEmpty());
}

TEST_F(CheckpointTest, AfterAnAttemptThatTookLongerThanTheIntervalWorkersTrainAsLong) {
  job_.Pass(seconds(5));
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(CheckpointTaker::kPauseTime)), IsEmpty());
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(CheckpointTaker::kPauseTime - seconds(1))), IsEmpty());
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(seconds(1))), SizeIs(2));
}

TEST_F(CheckpointTest, SoTheyDoAfterACheckpointThatTookLonger) {
  job_.Pass(seconds(5));
  job_.Pass(seconds(6));
  Pause(kWorker0, 17);
  Pause(kWorker1, 23);
  job_.StoreSnapshot(kServer0, 1);
  EXPECT_THAT(Sent<PausePushes>(job_.StoreSnapshot(kServer1, 1)), IsEmpty());
  ASSERT_EQ(job_.state().checkpoint.snapshot, 1u);
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(seconds(5))), IsEmpty());
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(seconds(1))), SizeIs(2));
}

TEST_F(CheckpointTest, ARequestedAttemptThatTookTooLongIsTriedAgainAfterAWhile) {
  job_.Handle(CheckpointRequested{});
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(CheckpointTaker::kPauseTime)), IsEmpty());
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(CheckpointTaker::kRetry)), SizeIs(2));
}

TEST_F(CheckpointTest, ALostWorkerAndANewOneEndTheAttempt) {
  job_.Pass(seconds(5));
  EXPECT_THAT(Sent<ResumePushes>(job_.Exit(kWorker1)), SizeIs(1));
  job_.Pass(seconds(5), {kWorker1});
  EXPECT_THAT(Sent<ResumePushes>(job_.Join(kWorker1, "new")), SizeIs(2));
}

TEST_F(CheckpointTest, AWorkerThatComesBackHearsTheCommandAgain) {
  job_.Pass(seconds(5));
  EXPECT_THAT(Sent<PausePushes>(job_.Join(kWorker0, "worker-0", 1)), SizeIs(1));
}

TEST_F(CheckpointTest, TheEndOfTheEpochOvertakesIt) {
  job_.Pass(seconds(5));
  EXPECT_THAT(Sent<ResumePushes>(job_.Tell(kData0, EpochEnded{1})), SizeIs(2));
  job_.TrainAndEvaluate(50);
  EXPECT_EQ(job_.state().evaluated_snapshot, 2u);
  EXPECT_EQ(job_.state().epoch, 2u);
  EXPECT_THAT(job_.state().checkpoint.cuts, IsEmpty());
}

TEST_F(CheckpointTest, ARestartedControllerReleasesWhoHolds) {
  job_.Pass(seconds(5));
  job_.RestartController();
  EXPECT_THAT(Sent<ResumePushes>(job_.JoinAll("-again")), SizeIs(2));
}

TEST_F(CheckpointTest, OneThatIsRequestedBeginsAtOnceAndIsTriedAgainWhenDisturbed) {
  job_.Pass(seconds(1));
  EXPECT_THAT(Sent<PausePushes>(job_.Handle(CheckpointRequested{})), SizeIs(2));
  job_.Exit(kWorker1);
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(seconds(1), {kWorker1})), IsEmpty());
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(seconds(1), {kWorker1})), SizeIs(1));
  Pause(kWorker0, 17);
  const std::uint64_t snapshot = job_.state().last_snapshot;
  job_.StoreSnapshot(kServer0, snapshot);
  job_.StoreSnapshot(kServer1, snapshot);
  EXPECT_EQ(job_.state().checkpoint.snapshot, snapshot);
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(seconds(3), {kWorker1})), IsEmpty());
}

TEST_F(CheckpointTest, ARequestDuringAnAttemptTakesAnotherAfterIt) {
  job_.Pass(seconds(5));
  job_.Handle(CheckpointRequested{});
  ASSERT_EQ(job_.state().last_snapshot, 1u);
  Pause(kWorker0, 17);
  Pause(kWorker1, 23);
  job_.StoreSnapshot(kServer0, 1);
  EXPECT_THAT(Sent<PausePushes>(job_.StoreSnapshot(kServer1, 1)), SizeIs(2));
  EXPECT_EQ(job_.state().last_snapshot, 2u);
}

// Workers pause their pushes for a while only.
TEST_F(CheckpointTest, AControllerThatWasHeldUpGivesTheAttemptUp) {
  job_.Pass(seconds(5));
  Pause(kWorker0, 17);
  Pause(kWorker1, 23);
  job_.StoreSnapshot(kServer0, 1);
  job_.Sleep(seconds(60));
  EXPECT_THAT(Sent<ResumePushes>(job_.StoreSnapshot(kServer1, 1)), SizeIs(2));
  EXPECT_EQ(job_.state().checkpoint.snapshot, 0u);
}

// The clock of the controller is 10 % slow, the worker's 10 % fast, as far as leases allow: in the
// last moment of an attempt the worker still pauses.
TEST_F(CheckpointTest, AWorkerPausesForAsLongAsAnAttemptMayTakeByAnyClocks) {
  constexpr double kDrift = 0.1;
  job_.Pass(seconds(5));
  worker::PushPause pause;
  const Clock::TimePoint begun{};
  pause.Begin(job_.state().last_snapshot, begun);
  const auto by_the_worker = [&](Clock::Duration by_the_controller) {
    return begun + std::chrono::duration_cast<Clock::Duration>(by_the_controller * (1 + kDrift) /
                                                               (1 - kDrift));
  };
  job_.Pass(CheckpointTaker::kPauseTime - milliseconds(1));
  Pause(kWorker0, 17);
  Pause(kWorker1, 23);
  job_.StoreSnapshot(kServer0, 1);
  const auto last = CheckpointTaker::kPauseTime + CheckpointTaker::kStoreTime - milliseconds(2);
  EXPECT_THAT(Sent<ResumePushes>(job_.Pass(CheckpointTaker::kStoreTime - milliseconds(1))),
              IsEmpty());
  pause.Advance(by_the_worker(last));
  EXPECT_TRUE(pause.active());
  job_.StoreSnapshot(kServer1, 1);
  EXPECT_EQ(job_.state().checkpoint.snapshot, 1u) << "the attempt was not given up yet";
  // And some time for messages and for threads that wait.
  EXPECT_GE(4 * worker::PushPause::kTimeout,
            5 * (CheckpointTaker::kPauseTime + CheckpointTaker::kStoreTime));
}

TEST_F(CheckpointTest, AnAttemptThatTakesLongerIsGivenUp) {
  job_.Pass(seconds(5));
  job_.Pass(CheckpointTaker::kPauseTime - milliseconds(1));
  Pause(kWorker0, 17);
  Pause(kWorker1, 23);
  job_.StoreSnapshot(kServer0, 1);
  EXPECT_THAT(Sent<ResumePushes>(job_.Pass(CheckpointTaker::kStoreTime)), SizeIs(2));
  job_.StoreSnapshot(kServer1, 1);
  EXPECT_EQ(job_.state().checkpoint.snapshot, 0u);
}

// Workers that pause send again what was rolled back, and the bucket is stored before that.
TEST_F(CheckpointTest, ABucketThatLosesAllItsReplicasEndsTheAttempt) {
  job_.Pass(seconds(5));
  Pause(kWorker0, 17);
  Pause(kWorker1, 23);
  job_.StoreSnapshot(kServer0, 1);
  job_.Exit(kServer1);
  job_.Pass(seconds(2), {kServer1});
  job_.Join(kServer1, "again");
  EXPECT_THAT(Sent<ResumePushes>(job_.ReportDisk(1, 30)), SizeIs(2));
  EXPECT_EQ(job_.state().buckets[1].generation, 2u);
  EXPECT_THAT(Sent<TakeSnapshot>(job_.Serve(1, 30)), IsEmpty());
  job_.StoreSnapshot(kServer1, 1);
  EXPECT_EQ(job_.state().checkpoint.snapshot, 0u);
}

TEST_F(CheckpointTest, SoItIsWhenTheFirstWorkerPausesBeforeAndTheLastAfterIt) {
  job_.Pass(seconds(5));
  Pause(kWorker0, 17);
  job_.Exit(kServer1);
  job_.Pass(seconds(2), {kServer1});
  job_.ReplaceServer(1, "again");
  EXPECT_EQ(job_.state().buckets[1].generation, 2u);
  EXPECT_THAT(Sent<TakeSnapshot>(Pause(kWorker1, 23)), IsEmpty());
}

TEST_F(CheckpointTest, WhatIsAskedForIsOfTheGenerationsOfNow) {
  job_.Exit(kServer1);
  job_.Pass(seconds(2), {kServer1});
  job_.ReplaceServer(1, "again");
  job_.Pass(seconds(5));
  job_.Handle(CheckpointRequested{});
  Pause(kWorker0, 17);
  const auto asked = Sent<TakeSnapshot>(Pause(kWorker1, 23));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_EQ(asked[0].second.generations, (std::vector<std::uint64_t>{1, 2, 1, 2}));
}

// It is told to end; nobody knows whether it has.
TEST_F(CheckpointTest, TheServersRefuseAWorkerThatWasGivenUp) {
  job_.Pass(seconds(5));
  Pause(kWorker0, 17);
  EXPECT_EQ(Sent<TakeSnapshot>(Pause(kWorker1, 23)).front().second.writers_from,
            (std::vector<Incarnation>{1, 1}));
  job_.StoreSnapshot(kServer0, 1);
  job_.StoreSnapshot(kServer1, 1);
  job_.Pass(seconds(11), {kWorker1});
  job_.Handle(CheckpointRequested{});
  const auto asked = Sent<TakeSnapshot>(Pause(kWorker0, 19));
  ASSERT_THAT(asked, SizeIs(2));
  for (const auto& [server, take] : asked) {
    EXPECT_EQ(take.writers_from, (std::vector<Incarnation>{1, 2}));
  }
}

TEST_F(CheckpointTest, AWorkerThatHasNotComeBackToANewControllerIsWaitedFor) {
  const std::vector<StartProcess> running = job_.controller().Wanted();
  job_.RestartController({.running = running});
  for (const StartProcess& process : running) {
    if (process.id != kWorker1) {
      job_.Join(process.id, ToString(process.id), 1);
      job_.Tell(process.id, Heartbeat{});
    }
  }
  job_.Serve(0);
  job_.Serve(1);
  ASSERT_EQ(job_.state().phase, Phase::kRunning);
  job_.Handle(CheckpointRequested{});
  EXPECT_THAT(Sent<TakeSnapshot>(Pause(kWorker0, 17)), IsEmpty());
  job_.Join(kWorker1, ToString(kWorker1), 1);
  EXPECT_THAT(Sent<PausePushes>(job_.Pass(CheckpointTaker::kRetry)), SizeIs(2));
}

TEST_F(CheckpointTest, ARequestBetweenEpochsWaitsForTheNext) {
  job_.Tell(kData0, EpochEnded{1});
  EXPECT_THAT(Sent<PausePushes>(job_.Handle(CheckpointRequested{})), IsEmpty());
  EXPECT_THAT(Sent<PausePushes>(job_.TrainAndEvaluate(50)), SizeIs(2));
  EXPECT_EQ(job_.state().epoch, 2u);
}

// Its workers push again as the later epoch opens, so that nothing may be stored by their cuts.
TEST_F(CheckpointTest, OneThatALaterEpochOvertakesIsGivenUpAndBegunAnewIfRequested) {
  job_.Handle(CheckpointRequested{});
  Pause(kWorker0, 17);
  const auto adopted =
      job_.Tell(kData0, Heartbeat{.progress = DataServerProgress{.epoch = 2, .decided_epoch = 2}});
  ASSERT_EQ(job_.state().epoch, 2u);
  EXPECT_THAT(Pick<Note>(adopted),
              Contains(Field(&Note::text, HasSubstr("checkpoint 1 is given up"))));
  EXPECT_THAT(Sent<PausePushes>(adopted), SizeIs(2));
  EXPECT_EQ(job_.state().last_snapshot, 2u);
  const auto late = job_.Tell(kWorker1, PushesPaused{.checkpoint = 1, .sequence = 23});
  EXPECT_THAT(Sent<TakeSnapshot>(late), IsEmpty());
}

// All disks have lost a bucket's live state.
class RollBackTest : public CheckpointTest {
 protected:
  Harness::Actions Resume() {
    auto all = job_.RestartController({.others = false});
    for (std::size_t i = 0; i < job_.state().slots.size(); ++i) {
      const SlotId id = SlotAt(SmallJob(), i);
      Harness::Append(all, job_.Join(id, ToString(id) + "-resumed"));
      Harness::Append(all, job_.Tell(id, Heartbeat{}));
    }
    job_.ReportDisk(0);
    Harness::Append(all,
                    job_.Tell(kServer1, StoredBuckets{.previous_incarnation = 1, .buckets = {}}));
    return all;
  }
};

TEST_F(RollBackTest, AResumedJobGoesBackToItsCheckpointWhole) {
  TakeCheckpoint();
  Resume();
  EXPECT_EQ(job_.state().phase, Phase::kStarting);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Configuration& configuration = job_.state().buckets[i];
    EXPECT_EQ(configuration.restored_snapshot, 1u);
    EXPECT_EQ(configuration.primary, job_.ServerIdOf(i % 2));
  }
  job_.Serve(0);
  EXPECT_THAT(Sent<OpenEpoch>(job_.Serve(1)), SizeIs(2));
}

TEST_F(RollBackTest, AnEpochThatHadEndedStaysEnded) {
  job_.TrainAndEvaluate(50);
  ASSERT_EQ(job_.state().epoch, 2u);
  job_.Tell(kData0, EpochEnded{2});
  ASSERT_EQ(job_.state().step, Step::kClosing);
  Resume();
  EXPECT_EQ(job_.state().epoch, 2u);
  EXPECT_EQ(job_.state().step, Step::kTraining);
}

TEST_F(RollBackTest, WithoutACheckpointTheJobFailsAndSaysWhy) {
  Resume();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("parameter-server-1: nothing is stored"));
  EXPECT_THAT(job_.state().message, HasSubstr("begin the job anew"));
  EXPECT_EQ(job_.controller().Report().end, EndKind::kAllLost);
}

TEST_F(RollBackTest, ACheckpointThatIsGoneIsNotPromised) {
  TakeCheckpoint();
  std::string told;
  for (const Note& note : Pick<Note>(Resume())) {
    told += note.kind == Note::Kind::kRestored ? note.text : "";
  }
  EXPECT_THAT(told,
              HasSubstr("; the job goes back to checkpoint 1, if it is still on the disks, and "
                        "trains again what came after it"));
  BucketsReady lost;
  for (const BucketId bucket : {1u, 3u}) {
    lost.buckets.push_back({.bucket = bucket,
                            .configuration_version = job_.state().buckets[bucket].version,
                            .lost = true,
                            .detail = "not in the snapshot"});
  }
  job_.Tell(kServer1, lost);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("checkpoint 1 cannot be restored either"));
  EXPECT_THAT(job_.state().message, HasSubstr("begin the job anew"));
  EXPECT_THAT(job_.state().message, testing::Not(HasSubstr("goes back to checkpoint")));
  EXPECT_EQ(job_.controller().Report().end, EndKind::kAllLost);
}

TEST_F(RollBackTest, ARunningJobDoesNotGoBackByItself) {
  TakeCheckpoint();
  job_.Exit(kServer1);
  job_.Pass(seconds(1), {kServer1});
  job_.Join(kServer1, "new");
  job_.Tell(kServer1, StoredBuckets{.previous_incarnation = 1, .buckets = {}});
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message,
              HasSubstr("--resume goes back to checkpoint 1, if it is still on"));
}

}  // namespace
}  // namespace adamant::controller
