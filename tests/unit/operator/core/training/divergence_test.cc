#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/operator/core/training/divergence_fixture.h"

// What jobs do that diverge: how they go back, fail or go on.
namespace adamant::controller {
namespace {

using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kProcesses = 6;

TEST_F(DivergenceTest, StoresTheFirstWeightsBeforeTheFirstEpoch) {
  job_.Begin();
  const Actions joined = job_.JoinAll();
  EXPECT_THAT(Sent<OpenEpoch>(joined), IsEmpty());
  ASSERT_THAT(Sent<TakeSnapshot>(joined), SizeIs(2));
  EXPECT_EQ(job_.state().phase, Phase::kStarting);
  const Actions stored = StoreFirstWeights();
  EXPECT_THAT(Sent<OpenEpoch>(stored), SizeIs(2));
  EXPECT_EQ(recovery().healthy.checkpoint.snapshot, 1u);
  EXPECT_EQ(recovery().healthy.epoch, 1u);
}

TEST_F(DivergenceTest, WhatAWorkerNoticesIsToldOnce) {
  Open();
  std::vector<std::string> texts;
  for (const Note& note : Pick<Note>(Diverge())) {
    if (note.text.find("NaN") != std::string::npos) {
      texts.push_back(note.text);
    }
  }
  EXPECT_THAT(texts, testing::ElementsAre("training diverged: NaN"));
}

TEST_F(DivergenceTest, AControllerThatRestartsStoresTheFirstWeightsAgain) {
  job_.Begin();
  job_.JoinAll();
  job_.RestartController();
  const Actions joined = job_.JoinAll();
  EXPECT_THAT(Sent<OpenEpoch>(joined), IsEmpty());
  const auto taken = Sent<TakeSnapshot>(joined);
  ASSERT_THAT(taken, SizeIs(2));
  job_.StoreSnapshot(kServer0, taken[0].second.snapshot);
  EXPECT_THAT(Sent<OpenEpoch>(job_.StoreSnapshot(kServer1, taken[0].second.snapshot)), SizeIs(2));
}

// Found by seed 3113870 of the cluster simulation: the server was asked again, stored the bucket
// anew as it was of another generation, and training had begun by then.
TEST_F(DivergenceTest, TheFirstWeightsAreTakenAnewWhenABucketIsLostMeanwhile) {
  JobSettings settings = DivergingJob(OnDivergence::Action::kRecover);
  settings.restart_limit = 10;
  job_ = Harness(settings);
  job_.Begin();
  job_.JoinAll();
  job_.StoreSnapshot(kServer1, 1);
  job_.Exit(kServer1);
  job_.Pass(std::chrono::seconds(2), {kServer1});
  job_.Join(kServer1, "again");
  job_.ReportDisk(1);
  ASSERT_EQ(job_.state().buckets[1].generation, 2u);
  job_.Serve(1);
  EXPECT_THAT(Sent<OpenEpoch>(job_.StoreSnapshot(kServer0, 1)), IsEmpty());
  job_.StoreSnapshot(kServer0, 2);
  EXPECT_THAT(Sent<OpenEpoch>(job_.StoreSnapshot(kServer1, 2)), SizeIs(2));
  EXPECT_EQ(job_.state().checkpoint.snapshot, 2u);
}

TEST_F(DivergenceTest, WeightsOfAnEpochThatWasOpenAreNotTheFirst) {
  job_ = Harness(DivergingJob(OnDivergence::Action::kContinue));
  job_.Begin();
  job_.JoinAll();
  job_.Pass(std::chrono::seconds(1));
  job_.Change(DivergingJob(OnDivergence::Action::kRecover));
  job_.RestartController();
  const Actions joined = job_.JoinAll();
  EXPECT_THAT(Sent<TakeSnapshot>(joined), IsEmpty());
  EXPECT_THAT(Sent<OpenEpoch>(joined), SizeIs(2));
  Diverge();
  EXPECT_EQ(job_.state().step, Step::kFirstWeights) << "they are made anew";
}

TEST_F(DivergenceTest, EveryProcessEndsBeforeOneStartsAgain) {
  Open();
  const Actions diverged = Diverge();
  EXPECT_THAT(Pick<KillProcess>(diverged), SizeIs(kProcesses));
  EXPECT_THAT(Pick<StartProcess>(diverged), IsEmpty());
  for (const SlotId id : {kData0, kData1, kServer0, kServer1, kWorker0}) {
    EXPECT_THAT(Pick<StartProcess>(job_.Exit(id)), IsEmpty());
  }
  EXPECT_THAT(Pick<StartProcess>(job_.Pass(std::chrono::seconds(30))), IsEmpty());
  EXPECT_THAT(Pick<StartProcess>(job_.Exit(kWorker1)), SizeIs(kProcesses));
  EXPECT_EQ(job_.state().restarts, 0u);
  EXPECT_EQ(job_.state().phase, Phase::kStarting);
}

TEST_F(DivergenceTest, AProcessThatIsBeingEndedIsRefused) {
  Open();
  Diverge();
  EXPECT_THAT(Sent<Refused>(job_.Join(kWorker1, ToString(kWorker1), 1)), SizeIs(1));
  EXPECT_THAT(Sent<Refused>(job_.Join(kWorker1, "another")), SizeIs(1));
}

TEST_F(DivergenceTest, GoesBackToTheFirstWeightsWithHalfTheRate) {
  Open();
  Diverge();
  ExitAll();
  const Actions joined = job_.JoinAll("-again");
  for (const auto& [connection, welcome] : Sent<Welcome>(joined)) {
    EXPECT_EQ(welcome.rate_factor, 0.5);
  }
  for (const Configuration& configuration : job_.state().buckets) {
    EXPECT_EQ(configuration.restored_snapshot, 1u);
    EXPECT_GT(configuration.generation, 1u);
  }
  EXPECT_THAT(Sent<OpenEpoch>(joined), SizeIs(2));
  EXPECT_EQ(job_.state().epoch, 1u);
  EXPECT_EQ(recovery().attempt, 2u);
  EXPECT_FALSE(recovery().going_back);
  EXPECT_THAT(recovery().divergence, HasSubstr("NaN"));
}

TEST_F(DivergenceTest, GoesBackToTheLastModelThatWasHealthy) {
  Open();
  RunEpoch(900);
  const std::uint64_t healthy = recovery().healthy.checkpoint.snapshot;
  EXPECT_EQ(healthy, job_.state().evaluated_snapshot);
  EXPECT_EQ(recovery().healthy.epoch, 2u);
  const Actions diverged = RunEpoch(118);
  EXPECT_EQ(job_.results().back().epoch, 2u);
  EXPECT_EQ(job_.results().back().attempt, 1u);
  EXPECT_THAT(Pick<KillProcess>(diverged), SizeIs(kProcesses));
  EXPECT_EQ(recovery().undone_examples, 90u);
  EXPECT_EQ(job_.state().epoch, 2u);
  EXPECT_EQ(job_.state().accuracy, 0.9) << "that of the model it goes back to";
  ExitAll();
  const Actions joined = job_.JoinAll("-again");
  EXPECT_EQ(job_.state().buckets[0].restored_snapshot, healthy);
  const auto opened = Sent<OpenEpoch>(joined);
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 2u);
  RunEpoch(910);
  EXPECT_EQ(job_.results().back().epoch, 2u);
  EXPECT_EQ(job_.results().back().attempt, 2u);
  EXPECT_EQ(recovery().healthy.epoch, 3u);
}

TEST_F(DivergenceTest, AModelThatHasNeverLearnedIsNothingToGoBackTo) {
  Open();
  RunEpoch(118);
  EXPECT_EQ(job_.state().epoch, 2u) << "it may be slow";
  EXPECT_EQ(recovery().healthy.checkpoint.snapshot, 1u);
  Diverge();
  EXPECT_EQ(job_.state().epoch, 1u);
  EXPECT_EQ(recovery().undone_examples, 90u);
}

TEST_F(DivergenceTest, AModelThatDivergesAgainWasNotAsHealthyAsItSeemed) {
  Open();
  RunEpoch(900);
  RunEpoch(118);
  ExitAll();
  job_.JoinAll("-again");
  ASSERT_EQ(job_.state().epoch, 2u);
  Diverge();
  EXPECT_EQ(job_.state().epoch, 1u);
  EXPECT_EQ(job_.state().checkpoint.snapshot, 1u);
  EXPECT_EQ(recovery().undone_examples, 180u) << "the second epoch, and then the first";
  EXPECT_EQ(recovery().rate_factor, 0.25);
}

TEST_F(DivergenceTest, AModelThatIsMuchWorseIsNothingToGoBackTo) {
  Open();
  RunEpoch(900);
  const std::uint64_t best = recovery().healthy.checkpoint.snapshot;
  RunEpoch(840);
  RunEpoch(790);
  EXPECT_EQ(job_.state().epoch, 4u);
  EXPECT_EQ(recovery().healthy.epoch, 3u) << "840 of 1,000 is healthy beside 900, 790 is not";
  EXPECT_NE(recovery().healthy.checkpoint.snapshot, best);
  RunEpoch(400);
  EXPECT_EQ(job_.state().epoch, 3u) << "it has diverged";
  EXPECT_EQ(recovery().undone_examples, 180u);
}

TEST_F(DivergenceTest, AModelThatIsBeingWrittenHasBeenJudged) {
  Open();
  for (int epoch = 1; epoch <= 4; ++epoch) {
    RunEpoch(900);
  }
  ASSERT_EQ(job_.state().step, Step::kExporting);
  EXPECT_THAT(Pick<KillProcess>(Diverge()), IsEmpty());
}

TEST_F(DivergenceTest, WhatIsUndoneIsNotLost) {
  Open();
  job_.Tell(kServer0,
            Heartbeat{.progress = ParameterServerProgress{.updates_applied = 70,
                                                          .buckets = {{.bucket = 0,
                                                                       .configuration_version = 1,
                                                                       .updates = 70,
                                                                       .serving = true}}}});
  ASSERT_EQ(job_.state().histories[0].updates, 70u);
  Diverge();
  ExitAll();
  job_.JoinAll("-again");
  EXPECT_EQ(recovery().undone_updates, 70u);
  EXPECT_EQ(job_.state().histories[0].rolled_back, 0u);
}

std::string HowItWentBack(const Harness::Actions& actions) {
  for (const Note& note : Pick<Note>(actions)) {
    if (note.kind == Note::Kind::kWentBack) {
      return note.text;
    }
  }
  return "nothing";
}

Heartbeat WithUpdates(std::uint64_t updates) {
  return {.progress = ParameterServerProgress{
              .updates_applied = updates,
              .buckets = {
                  {.bucket = 0, .configuration_version = 2, .updates = updates, .serving = true}}}};
}

TEST_F(DivergenceTest, WhatIsUndoneIsToldWhereThereIsAny) {
  Open();
  EXPECT_THAT(HowItWentBack(Diverge()), testing::EndsWith(", at learning rate 0.04"));
  ExitAll();
  job_.JoinAll("-again");
  job_.Tell(kServer0, WithUpdates(70));
  EXPECT_THAT(HowItWentBack(Diverge()), testing::EndsWith("0.02; 70 updates are undone"));
  ExitAll();
  job_.JoinAll("-third");
  EXPECT_THAT(HowItWentBack(RunEpoch(900)), "nothing");
  EXPECT_THAT(HowItWentBack(RunEpoch(118)),
              testing::EndsWith("0.01; 90 counted examples are undone"));
}

TEST_F(DivergenceTest, OneUpdateThatIsUndoneIsNoPlural) {
  Open();
  Diverge();
  ExitAll();
  job_.JoinAll("-again");
  job_.Tell(kServer0, WithUpdates(1));
  EXPECT_THAT(HowItWentBack(Diverge()), testing::EndsWith("0.02; 1 update is undone"));
}

TEST_F(DivergenceTest, ParametersThatCameBackAreNotToldAsALoss) {
  Open();
  Diverge();
  ExitAll();
  std::vector<std::string> texts;
  for (const Note& note : Pick<Note>(job_.JoinAll("-again"))) {
    if (note.kind == Note::Kind::kRestored) {
      texts.push_back(note.text);
    }
  }
  const std::string all = std::to_string(job_.state().buckets.size());
  EXPECT_THAT(texts, testing::ElementsAre("the parameters are back (all " + all + " buckets)"));
}

TEST_F(DivergenceTest, AControllerThatTakesOverGoesOnGoingBack) {
  Open();
  Diverge();
  std::vector<StartProcess> running;
  for (const SlotId id : {kServer0, kWorker0}) {
    job_.Exit(id == kServer0 ? kServer1 : kWorker1);
    running.push_back({.id = id, .generation = job_.GenerationOf(id)});
  }
  const Actions begun = job_.RestartController({.others = false, .running = running});
  EXPECT_THAT(Pick<KillProcess>(begun), testing::Contains(Field(&KillProcess::id, kServer0)));
  EXPECT_THAT(Pick<StartProcess>(job_.Handle(Tick{})), IsEmpty());
  job_.Exit(kServer0);
  EXPECT_THAT(Pick<StartProcess>(job_.Exit(kWorker0)), SizeIs(kProcesses));
  EXPECT_THAT(Sent<OpenEpoch>(job_.JoinAll("-again")), SizeIs(2));
  EXPECT_EQ(job_.state().buckets[0].restored_snapshot, 1u);
  EXPECT_EQ(recovery().attempt, 2u);
}

TEST_F(DivergenceTest, AServerThatDiesOnTheWayBackTakesAllWithIt) {
  JobSettings settings = DivergingJob(OnDivergence::Action::kRecover);
  settings.restart_limit = 10;
  job_ = Harness(settings);
  Open();
  Diverge();
  ExitAll();
  for (const SlotId id : {kServer0, kServer1}) {
    job_.Join(id, ToString(id) + "-again");
  }
  job_.ReportDisk(0);
  job_.ReportDisk(1);
  ASSERT_EQ(job_.state().buckets[0].restored_snapshot, 1u);
  job_.Exit(kServer1);
  EXPECT_TRUE(recovery().going_back);
  for (const SlotId id : {kData0, kData1, kServer0, kWorker0, kWorker1}) {
    job_.Exit(id);
  }
  job_.Pass(std::chrono::seconds(5));
  EXPECT_THAT(Sent<OpenEpoch>(job_.JoinAll("-third")), SizeIs(2));
  EXPECT_EQ(recovery().attempt, 2u);
}

TEST_F(DivergenceTest, AfterTheLastTimeTheJobFailsAndSaysWhatToTry) {
  job_ = Harness(DivergingJob(OnDivergence::Action::kRecover, 1));
  Open();
  Diverge();
  ExitAll();
  job_.JoinAll("-again");
  Diverge();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("learning rate 0.04"));
  EXPECT_THAT(job_.state().message, HasSubstr("gone back 1 time"));
  EXPECT_EQ(job_.controller().Report().end, EndKind::kDivergedAgain);
  EXPECT_THAT(job_.state().message, HasSubstr("try a lower spec.optimiser.rate"));
}

TEST_F(DivergenceTest, AJobThatIsResumedGoesBackFirst) {
  job_ = Harness(DivergingJob(OnDivergence::Action::kRecover, 1));
  Open();
  Diverge();
  ExitAll();
  job_.JoinAll("-again");
  Diverge();
  ASSERT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(Pick<Note>(job_.RestartController({.others = false})),
              testing::Contains(Field(&Note::text,
                                      "training had diverged: the job goes back to its first "
                                      "weights (checkpoint 1) and on as attempt 3, at learning "
                                      "rate 0.02")));
  EXPECT_THAT(Pick<StartProcess>(job_.Handle(Tick{})), SizeIs(kProcesses));
  EXPECT_THAT(Sent<OpenEpoch>(job_.JoinAll("-third")), SizeIs(2));
  EXPECT_EQ(recovery().attempt, 3u);
  EXPECT_EQ(recovery().rate_factor, 0.25);
  EXPECT_EQ(recovery().times, 0u);
}

TEST_F(DivergenceTest, FailFailsTheJob) {
  job_ = Harness(DivergingJob(OnDivergence::Action::kFail));
  job_.Begin();
  EXPECT_THAT(Sent<OpenEpoch>(job_.JoinAll()), SizeIs(2)) << "nothing is stored before";
  Diverge();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("at learning rate 0.08"));
  EXPECT_EQ(job_.controller().Report().end, EndKind::kDiverged);
  job_.RestartController({.others = false});
  EXPECT_EQ(job_.controller().Report().end, EndKind::kOther) << "it goes on";
}

TEST_F(DivergenceTest, WeightDecayThatIsStrongIsNamedFirstAndFrozenLayersAreNot) {
  JobSettings settings = DivergingJob(OnDivergence::Action::kFail);
  settings.hindrances = {.weight_decay = 0.5, .is_of_layer = true, .frozen = {"conv1"}};
  job_ = Harness(settings);
  job_.Begin();
  job_.JoinAll();
  Diverge();
  EXPECT_THAT(job_.state().message,
              HasSubstr("; try first a lower weight decay than 0.5 (spec.optimiser.layers), then a "
                        "lower spec.optimiser.rate"));
  EXPECT_THAT(job_.state().message, testing::Not(HasSubstr("conv1")));
}

TEST_F(DivergenceTest, ContinueTellsAndGoesOn) {
  job_ = Harness(DivergingJob(OnDivergence::Action::kContinue));
  job_.Begin();
  job_.JoinAll();
  RunEpoch(900);
  const Actions diverged = RunEpoch(118);
  const auto tells_of = [](DataEpoch epoch) {
    return testing::Contains(
        AllOf(Field(&Note::kind, Note::Kind::kDiverged), Field(&Note::epoch, epoch)));
  };
  EXPECT_THAT(Pick<Note>(diverged), tells_of(2));
  EXPECT_EQ(job_.state().epoch, 3u);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
  EXPECT_THAT(Pick<Note>(Diverge()), tells_of(3));
}

TEST_F(DivergenceTest, ContinueSaysWhatASpentBudgetWasSpentFor) {
  job_ = Harness(DivergingJob(OnDivergence::Action::kContinue));
  job_.Begin();
  job_.JoinAll();
  Diverge();
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
  job_.Exit(kWorker0);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("restart budget of 0 is spent"));
  EXPECT_THAT(job_.state().message, HasSubstr("training diverged: NaN"));
}

}  // namespace
}  // namespace adamant::controller
