#include "operator/core/training/going_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/operator/core/training/going_back_fixture.h"

// Which model a job that diverges goes back to.
namespace adamant::controller {
namespace {

using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// --- Checkpoints within an epoch

TEST_F(GoingBackTest, ACheckpointWithinAnEpochIsHealthyOnceWhatFollowedWas) {
  Train(1, 2.3);
  Train(5'000, 1);
  const std::uint64_t first = TakeCheckpoint();
  EXPECT_EQ(healthy(), 1u);
  Train(5'000, 0.8);
  const std::uint64_t second = TakeCheckpoint();
  EXPECT_EQ(healthy(), first);
  Train(5'000, 0.7);
  TakeCheckpoint();
  EXPECT_EQ(healthy(), second);
  EXPECT_EQ(recovery().older.checkpoint.snapshot, first);
}

TEST_F(GoingBackTest, TheJobGoesBackToItAndOpensItsEpochAgain) {
  Train(1, 2.3);
  RunEpoch(900);
  const std::uint64_t evaluated = job_.state().evaluated_snapshot;
  Train(5'000, 1);
  job_.Tell(kData0, Heartbeat{.progress = DataServerProgress{.epoch = 2, .counted_examples = 40}});
  const std::uint64_t checkpoint = TakeCheckpoint();
  Train(5'000, 0.8);
  TakeCheckpoint();
  job_.Tell(kData0, Heartbeat{.progress = DataServerProgress{.epoch = 2, .counted_examples = 70}});
  EXPECT_THAT(WentBack(Diverge()),
              Contains(HasSubstr("goes back to the model within epoch 2 (checkpoint " +
                                 std::to_string(checkpoint) + ")")));
  EXPECT_EQ(recovery().undone_examples, 30u);
  EXPECT_EQ(job_.state().evaluated_snapshot, evaluated);
  EXPECT_EQ(job_.state().accuracy, 0.9);
  StartAgain();
  EXPECT_EQ(job_.state().buckets[0].restored_snapshot, checkpoint);
  const auto opened = Sent<OpenEpoch>(Serve());
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 2u);
}

TEST_F(GoingBackTest, ACheckpointAfterWhichTheLossIsHighIsNot) {
  Train(1, 2.3);
  Train(20'000, 0.2);
  TakeCheckpoint();
  Train(5'000, 1);
  TakeCheckpoint();
  EXPECT_EQ(healthy(), 1u);
}

TEST_F(GoingBackTest, ACheckpointOfAModelThatLearnsNothingIsNot) {
  Train(1, 2.3);
  TakeCheckpoint();
  Train(20'000, 2.3);
  TakeCheckpoint();
  EXPECT_EQ(healthy(), 1u);
}

TEST_F(GoingBackTest, ACheckpointAfterWhichHardlyAnythingWasTrainedIsNot) {
  Train(1, 2.3);
  TakeCheckpoint();
  Train(999, 0.8);
  TakeCheckpoint();
  EXPECT_EQ(healthy(), 1u);
}

TEST_F(GoingBackTest, ACheckpointIsProvedThoughOthersFollowBeforeEnoughIsTrained) {
  Train(1, 2.3);
  Train(5'000, 1);
  const std::uint64_t first = TakeCheckpoint();
  for (int i = 0; i < 3; ++i) {
    Train(300, 0.8);
    TakeCheckpoint();
    EXPECT_EQ(healthy(), 1u);
  }
  Train(100, 0.8);
  job_.Handle(CheckpointRequested{});
  const std::uint64_t last = job_.state().last_snapshot;
  job_.Tell(kWorker0, PushesPaused{.checkpoint = last});
  const auto asked = Sent<TakeSnapshot>(job_.Tell(kWorker1, PushesPaused{.checkpoint = last}));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_THAT(asked[0].second.keep, Contains(first)) << "servers keep it till then";
  StoreSnapshot(last);
  EXPECT_EQ(healthy(), first);
  Train(1'000, 0.8);
  TakeCheckpoint();
  EXPECT_EQ(healthy(), last) << "what follows is proved from there";
}

TEST_F(GoingBackTest, TheEndOfAnEpochIsJudgedByItsResult) {
  Train(1, 2.3);
  Train(5'000, 1);
  TakeCheckpoint();
  Train(5'000, 0.8);
  RunEpoch(118);
  Train(5'000, 0.8);
  TakeCheckpoint();
  EXPECT_EQ(healthy(), 1u) << "the checkpoint of the epoch before has no other to prove it";
}

TEST_F(GoingBackTest, WhatTheLossWasGoesBackWithTheModel) {
  Train(1, 2.3);
  Train(10'000, 1);
  RunEpoch(900);
  Train(10'000, 0.5);
  ASSERT_EQ(recovery().best_loss, 0.5);
  Diverge();
  EXPECT_EQ(recovery().best_loss, 1);
}

// --- Models that cannot be read

TEST_F(GoingBackTest, AModelThatCannotBeReadGivesWayToTheOneBefore) {
  RunEpoch(900);
  const std::uint64_t older = healthy();
  RunEpoch(910);
  const std::uint64_t lost = healthy();
  Diverge();
  StartAgain();
  ASSERT_EQ(job_.state().buckets[0].restored_snapshot, lost);
  const Actions actions = LoseSnapshot(kServer0);
  EXPECT_THAT(WentBack(actions),
              Contains(HasSubstr("checkpoint " + std::to_string(lost) +
                                 " cannot be restored: the job goes back to the model of epoch 1 "
                                 "(checkpoint " +
                                 std::to_string(older) + ")")));
  EXPECT_THAT(Pick<KillProcess>(actions), SizeIs(6)) << "some may have loaded what is lost";
  EXPECT_EQ(recovery().undone_examples, 90u) << "the second epoch";
  EXPECT_EQ(recovery().attempt, 2u);
  EXPECT_EQ(recovery().best_top1, recovery().healthy.top1) << "the better model is lost";
  StartAgain();
  EXPECT_EQ(job_.state().buckets[0].restored_snapshot, older);
  const auto opened = Sent<OpenEpoch>(Serve());
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 2u);
  EXPECT_EQ(job_.state().restarts, 0u);
}

TEST_F(GoingBackTest, ThenTheFirstWeightsAreReadAndThenMadeAnew) {
  RunEpoch(900);
  Diverge();
  StartAgain();
  EXPECT_THAT(WentBack(LoseSnapshot(kServer0)),
              Contains(HasSubstr("goes back to its first weights (checkpoint 1)")));
  StartAgain();
  ASSERT_EQ(job_.state().buckets[0].restored_snapshot, 1u);
  EXPECT_THAT(WentBack(LoseSnapshot(kServer1)),
              Contains(HasSubstr("goes back to its first weights, made anew,")));
  StartAgain();
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::created, false)));
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::generation, 4u)));
  EXPECT_THAT(Sent<OpenEpoch>(Serve()), IsEmpty()) << "they are stored first";
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::created, true)));
  EXPECT_THAT(Sent<OpenEpoch>(StoreSnapshot(job_.state().last_snapshot)), SizeIs(2));
  EXPECT_EQ(job_.state().epoch, 1u);
  EXPECT_EQ(healthy(), job_.state().last_snapshot);
  EXPECT_EQ(recovery().attempt, 2u);
  EXPECT_EQ(recovery().rate_factor, 0.5);
}

TEST_F(GoingBackTest, AControllerThatTakesOverGoesOnMakingThemAnew) {
  Diverge();
  StartAgain();
  LoseSnapshot(kServer0);
  ExitAll();
  job_.RestartController({.others = false});
  StartAgain();
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::created, false)));
  Serve();
  job_.RestartController({.others = false});
  job_.JoinAll("-later");
  EXPECT_EQ(job_.state().phase, Phase::kStarting);
  EXPECT_THAT(Sent<OpenEpoch>(StoreSnapshot(job_.state().last_snapshot)), SizeIs(2));
}

TEST_F(GoingBackTest, AServerThatDiesWhileTheyAreMadeAnewTakesAllWithIt) {
  Diverge();
  StartAgain();
  LoseSnapshot(kServer0);
  StartAgain();
  job_.Serve(0);
  job_.Exit(kServer1);
  StartAgain();
  EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::created, false)));
  Serve();
  EXPECT_THAT(Sent<OpenEpoch>(StoreSnapshot(job_.state().last_snapshot)), SizeIs(2));
}

TEST_F(GoingBackTest, UsersDoNotFindTheCheckpointThatIsUndone) {
  const std::uint64_t checkpoint = TakeCheckpoint();
  const auto manifests = Pick<WriteManifest>(Diverge());
  ASSERT_THAT(manifests, SizeIs(1));
  EXPECT_NE(manifests[0].checkpoint.snapshot, checkpoint);
  EXPECT_EQ(manifests[0].checkpoint.snapshot, 0u);
  EXPECT_EQ(manifests[0].keep, 0u);
}

// --- Jobs that did not recover from the beginning

JobSettings JobThatFails() {
  JobSettings settings = RecoveringJob();
  settings.on_divergence.action = OnDivergence::Action::kFail;
  return settings;
}

class LateRecoveryTest : public GoingBackTest {
 protected:
  LateRecoveryTest() {
    job_ = Harness(JobThatFails());
    job_.Begin();
    job_.JoinAll();
  }

  void ExpectFirstWeightsMadeAnew() {
    StartAgain();
    EXPECT_THAT(job_.state().buckets, Each(Field(&Configuration::created, false)));
    EXPECT_THAT(Sent<OpenEpoch>(Serve()), IsEmpty()) << "they are stored first";
    EXPECT_THAT(Sent<OpenEpoch>(StoreSnapshot(job_.state().last_snapshot)), SizeIs(2));
    EXPECT_EQ(job_.state().epoch, 1u);
    EXPECT_EQ(recovery().attempt, 2u);
    EXPECT_EQ(recovery().rate_factor, 0.5);
    EXPECT_EQ(healthy(), job_.state().last_snapshot);
  }
};

TEST_F(LateRecoveryTest, AJobThatFailedMakesItsFirstWeightsAnewWhenItIsToRecover) {
  Diverge();
  ASSERT_EQ(job_.state().phase, Phase::kFailed);
  job_.Change(RecoveringJob());
  job_.RestartController({.others = false});
  EXPECT_TRUE(recovery().going_back);
  ExpectFirstWeightsMadeAnew();
}

TEST_F(LateRecoveryTest, SoDoesOneThatRunsAndIsToRecover) {
  job_.Handle(SpecChanged{RecoveringJob()});
  EXPECT_THAT(WentBack(Diverge()),
              Contains(HasSubstr("goes back to its first weights, made anew, and on")));
  ExpectFirstWeightsMadeAnew();
}

TEST_F(LateRecoveryTest, AJobThatIsToFailGoesBackWhenItIsResumedAtTheRateThatIsWritten) {
  RunEpoch(900);
  const DataEpoch of_epoch = healthy();
  Diverge();
  ASSERT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(WentBack(job_.RestartController({.others = false})),
              testing::ElementsAre("training had diverged: the job goes back to the model of epoch "
                                   "1 (checkpoint 1) and on as attempt 2, at learning rate 0.08"));
  EXPECT_TRUE(recovery().going_back);
  EXPECT_EQ(job_.state().checkpoint.snapshot, of_epoch);
  EXPECT_EQ(recovery().rate_factor, 1);
}

TEST_F(LateRecoveryTest, AModelThatWasFoundToHaveDivergedIsNotJudgedAgain) {
  RunEpoch(900);
  RunEpoch(118);
  ASSERT_EQ(job_.state().phase, Phase::kFailed);
  job_.RestartController({.others = false});
  EXPECT_EQ(job_.state().epoch, 2u);
  EXPECT_EQ(job_.state().row.snapshot, 0u) << "it is trained again";
}

TEST_F(LateRecoveryTest, AJobThatIsToContinueGoesOnAsItIs) {
  Diverge();
  JobSettings settings = RecoveringJob();
  settings.on_divergence.action = OnDivergence::Action::kContinue;
  job_.Change(settings);
  EXPECT_THAT(WentBack(job_.RestartController({.others = false})), IsEmpty());
  EXPECT_FALSE(recovery().going_back);
  EXPECT_EQ(recovery().attempt, 1u);
}

TEST_F(GoingBackTest, ServersKeepWhatTheJobMayGoBackTo) {
  RunEpoch(900);
  RunEpoch(910);
  job_.Handle(CheckpointRequested{});
  job_.Tell(kWorker0, PushesPaused{.checkpoint = 4});
  const auto asked = Sent<TakeSnapshot>(job_.Tell(kWorker1, PushesPaused{.checkpoint = 4}));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_THAT(asked[0].second.keep, testing::UnorderedElementsAre(1u, 2u, 3u));
}

}  // namespace
}  // namespace adamant::controller
