#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/unit/operator/core/training/going_back_fixture.h"

// Jobs of which only checkpoints are stored, and that lose all copies of a bucket.
namespace adamant::controller {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

JobSettings JobWithoutLog() {
  JobSettings settings = RecoveringJob();
  settings.only_checkpoints = true;
  return settings;
}

class LostParametersTest : public GoingBackTest {
 protected:
  LostParametersTest() { StartAs(JobWithoutLog()); }

  void StartAs(const JobSettings& settings) {
    job_ = Harness(settings);
    job_.Begin();
    job_.JoinAll();
    StoreSnapshot(1);
  }

  /// A server dies, and the next one finds checkpoints alone.
  Actions LoseServer() {
    job_.Exit(kServer0);
    job_.Join(kServer0, "the next");
    return job_.Tell(
        kServer0,
        StoredBuckets{.previous_incarnation = job_.ServerIdOf(0).incarnation - 1, .buckets = {}});
  }
};

TEST_F(LostParametersTest, GoesBackToTheNewestCheckpointAtTheSameRate) {
  RunEpoch(900);
  const std::uint64_t checkpoint = TakeCheckpoint();
  const Actions lost = LoseServer();
  EXPECT_THAT(WentBack(lost),
              Contains(HasSubstr("; the job goes back to the model within epoch 2 (checkpoint " +
                                 std::to_string(checkpoint) + ") and on as attempt 2")));
  EXPECT_THAT(WentBack(lost), Each(testing::Not(HasSubstr("--resume"))));
  EXPECT_THAT(Pick<KillProcess>(lost), SizeIs(6)) << "workers hold what is lost";
  StartAgain();
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::restored_snapshot, checkpoint)));
  const auto opened = Sent<OpenEpoch>(Serve());
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 2u);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
  EXPECT_EQ(recovery().rate_factor, 1);
  EXPECT_EQ(recovery().times, 0u) << "nothing has diverged";
}

TEST_F(LostParametersTest, GoesOnWithTheNextEpochAfterTheEndOfOne) {
  RunEpoch(900);
  LoseServer();
  StartAgain();
  const auto opened = Sent<OpenEpoch>(Serve());
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 2u);
}

TEST_F(LostParametersTest, AnEpochWhoseModelIsStoredStaysEnded) {
  job_.TrainOnly();
  const std::uint64_t snapshot = job_.state().row.snapshot;
  ASSERT_EQ(job_.state().step, Step::kEvaluating);
  LoseServer();
  StartAgain();
  EXPECT_THAT(Sent<OpenEpoch>(Serve()), IsEmpty());
  EXPECT_EQ(job_.state().epoch, 1u);
  EXPECT_EQ(job_.state().row.snapshot, snapshot);
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::restored_snapshot, snapshot)));
}

TEST_F(LostParametersTest, BeforeTheFirstCheckpointTheFirstWeightsAreMadeAnew) {
  JobSettings settings = JobWithoutLog();
  settings.on_divergence.action = OnDivergence::Action::kFail;  // which needs no first weights
  StartAs(settings);
  EXPECT_THAT(WentBack(LoseServer()), Contains(HasSubstr("its first weights, made anew, and on")));
  StartAgain();
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::created, false)));
  EXPECT_THAT(Sent<OpenEpoch>(Serve()), IsEmpty()) << "they are stored first";
  EXPECT_THAT(Sent<OpenEpoch>(StoreSnapshot(job_.state().last_snapshot)), SizeIs(2));
}

TEST_F(LostParametersTest, ACheckpointThatIsGoneTooGivesWayToTheHealthyModel) {
  RunEpoch(900);
  TakeCheckpoint();
  LoseServer();
  StartAgain();
  EXPECT_THAT(WentBack(LoseSnapshot(kServer0)),
              Contains(HasSubstr("goes back to the model of epoch 1 (checkpoint " +
                                 std::to_string(healthy()) + ")")));
  StartAgain();
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::restored_snapshot, healthy())));
}

TEST_F(LostParametersTest, WithoutAHealthyModelTheFirstWeightsAreMadeAnew) {
  JobSettings settings = JobWithoutLog();
  settings.on_divergence.action = OnDivergence::Action::kFail;
  StartAs(settings);
  TakeCheckpoint();
  LoseServer();
  StartAgain();
  EXPECT_THAT(WentBack(LoseSnapshot(kServer0)),
              Contains(HasSubstr("goes back to its first weights, made anew,")));
  StartAgain();
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::created, false)));
}

TEST_F(LostParametersTest, ACheckpointThatAnotherServerHasStoredSinceIsGoneBackTo) {
  job_.TrainOnly();
  SnapshotTaken again{
      .snapshot = job_.state().row.snapshot, .ok = true, .error = "", .buckets = {}};
  for (std::uint32_t i = 0; i < job_.state().buckets.size(); ++i) {
    const Configuration& configuration = job_.state().buckets[i];
    if (configuration.primary.slot == kServer0.slot) {
      again.buckets.push_back({.bucket = i,
                               .configuration_version = configuration.version,
                               .generation = configuration.generation,
                               .updates = 5});
    }
  }
  job_.Tell(kServer0, again);
  ASSERT_EQ(job_.state().checkpoint.buckets[again.buckets.front().bucket].updates, 5u);
  LoseServer();
  EXPECT_TRUE(recovery().going_back);
}

TEST_F(LostParametersTest, AControllerThatTakesOverGoesOnGoingBack) {
  RunEpoch(900);
  const std::uint64_t checkpoint = TakeCheckpoint();
  LoseServer();
  job_.RestartController({.others = false});
  StartAgain();
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::restored_snapshot, checkpoint)));
  EXPECT_THAT(Sent<OpenEpoch>(Serve()), SizeIs(2));
}

TEST_F(LostParametersTest, AJobThatIsToStopTakesACheckpointFirst) {
  RunEpoch(900);
  const SuspendRequested stop{.reason = "Ctrl-C"};
  EXPECT_THAT(Sent<PausePushes>(job_.Handle(stop)), SizeIs(2));
  EXPECT_THAT(Sent<PausePushes>(job_.Handle(stop)), IsEmpty()) << "it is repeated";
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
  const std::uint64_t snapshot = job_.state().last_snapshot;
  for (const SlotId worker : {kWorker0, kWorker1}) {
    job_.Tell(worker, PushesPaused{.checkpoint = snapshot, .sequence = 7});
  }
  const Actions stored = StoreSnapshot(snapshot);
  EXPECT_THAT(Pick<WriteManifest>(stored), SizeIs(1));
  EXPECT_THAT(Sent<Stop>(stored), SizeIs(2));
  EXPECT_EQ(job_.state().phase, Phase::kSuspended);
  EXPECT_EQ(job_.state().message, "Ctrl-C");
  EXPECT_EQ(job_.state().checkpoint.snapshot, snapshot);
}

TEST_F(LostParametersTest, AJobThatIsToStopDoesNotWaitLongForItsCheckpoint) {
  RunEpoch(900);
  job_.Handle(SuspendRequested{.reason = "Ctrl-C"});
  const Actions all = job_.Pass(milliseconds(2'900));
  EXPECT_EQ(job_.state().phase, Phase::kSuspended);
  EXPECT_THAT(Pick<KillProcess>(all), SizeIs(6));
  EXPECT_THAT(Pick<Finished>(all), SizeIs(1));
}

TEST_F(LostParametersTest, AJobThatIsToStopAtOnceTakesNoCheckpoint) {
  RunEpoch(900);
  job_.Handle(SuspendRequested{.reason = "Ctrl-C"});
  job_.Handle(SuspendRequested{.reason = "Ctrl-C", .at_once = true});
  EXPECT_EQ(job_.state().phase, Phase::kSuspended);
}

TEST_F(LostParametersTest, AModelThatIsBeingEvaluatedIsStoredAlready) {
  job_.TrainOnly();
  job_.Handle(SuspendRequested{.reason = "Ctrl-C"});
  EXPECT_EQ(job_.state().phase, Phase::kSuspended);
}

TEST_F(LostParametersTest, AJobThatStoresItsParametersStopsWithoutACheckpoint) {
  StartAs(RecoveringJob());
  RunEpoch(900);
  EXPECT_THAT(Sent<PausePushes>(job_.Handle(SuspendRequested{.reason = "Ctrl-C"})), IsEmpty());
  EXPECT_EQ(job_.state().phase, Phase::kSuspended);
}

TEST_F(LostParametersTest, AJobThatStoresItsParametersWaitsForAPerson) {
  StartAs(RecoveringJob());
  RunEpoch(900);
  LoseServer();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("--resume goes back to checkpoint 2"));
}

}  // namespace
}  // namespace adamant::controller
