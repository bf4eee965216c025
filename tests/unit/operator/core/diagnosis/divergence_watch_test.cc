#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/unit/operator/core/training/divergence_fixture.h"

// What is noticed of a job that diverges.
namespace adamant::controller {
namespace {

using testing::HasSubstr;

class WatchTest : public DivergenceTest {
 protected:
  static constexpr std::uint64_t kOfEpoch = 60'000;

  WatchTest() : DivergenceTest(OnDivergence::Action::kFail) {
    JobSettings settings = DivergingJob(OnDivergence::Action::kFail);
    settings.training_examples = kOfEpoch;
    job_ = Harness(settings);
    job_.Begin();
    job_.JoinAll();
  }

  /// The worker has trained `examples` more, each at this loss.
  void Train(std::uint64_t examples, double loss) {
    progress_.trained_examples += examples;
    progress_.loss_sum += loss * static_cast<double>(examples);
    job_.Tell(kWorker0, Heartbeat{.progress = progress_});
  }

  /// A heartbeat a second.
  void TrainFor(int beats, double loss) {
    for (int i = 0; i < beats; ++i) {
      job_.Sleep(std::chrono::seconds(1));
      Train(1000, loss);
    }
  }

  WorkerProgress progress_;
};

TEST_F(WatchTest, ALayerWhoseUnitsAreAllDead) {
  progress_.dead_units = {{.layer = "fc1", .units = 300, .dead = 300},
                          {.layer = "fc2", .units = 100, .dead = 100},
                          {.layer = "fc3", .units = 10, .dead = 9}};
  Train(100, 2.3);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("all 100 units of layer fc2 are dead"));
}

TEST_F(WatchTest, ALossThatIsFarAboveItsFirstValueForLong) {
  TrainFor(5, 2);
  TrainFor(15, 7);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
  TrainFor(15, 7);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("the training loss is 7, it began with 2"));
}

TEST_F(WatchTest, ALossThatIsHighForAWhileIsNothing) {
  for (int i = 0; i < 5; ++i) {
    TrainFor(12, 2);
    TrainFor(8, 7);
  }
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
}

TEST_F(WatchTest, ALossThatFallsIsNothing) {
  TrainFor(20, 2);
  TrainFor(60, 0.1);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
}

TEST_F(WatchTest, AnEpochWhoseLossIsFarAboveTheFirst) {
  Train(1000, 2);
  Train(9000, 20);
  job_.TrainOnly();
  EvaluateAs(500);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
}

TEST_F(WatchTest, AModelAtChanceWithHalfOfItsUnitsDead) {
  progress_.dead_units = {{.layer = "fc1", .units = 300, .dead = 150}};
  Train(1000, 2);
  job_.TrainOnly();
  EvaluateAs(118);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("150 of the 300 units of layer fc1"));
}

TEST_F(WatchTest, AModelAtChanceWhoseWeightsHaveGrown) {
  progress_.grown_layer = "conv1";
  progress_.weight_growth = 12;
  Train(1000, 2);
  job_.TrainOnly();
  EvaluateAs(118);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("layer conv1 have grown to 12 times"));
}

// A job that has learned in its first epoch.
class RisenLossTest : public WatchTest {
 protected:
  static constexpr std::uint64_t kOfPeriod = kOfEpoch / LossTrend::kPeriods;

  RisenLossTest() {
    Train(1'000, 2.3);
    TrainPeriods(8, 0.2);
    RunEpoch(940);
  }

  void TrainPeriods(int periods, double loss) {
    for (int i = 0; i < periods; ++i) {
      Train(kOfPeriod, loss);
    }
  }
};

TEST_F(RisenLossTest, ForAsManyExamplesAsAnEpochHas) {
  TrainPeriods(7, 1.2);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
  TrainPeriods(1, 1.2);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("the training loss has risen from 0.2 to 1.2"));
}

TEST_F(RisenLossTest, ForHalfAnEpochIsEnoughWhereTheModelIsWorseToo) {
  TrainPeriods(4, 0.2);
  TrainPeriods(4, 1.2);
  RunEpoch(600);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("the training loss has risen"));
}

TEST_F(RisenLossTest, ForHalfAnEpochIsEnoughWhereThereIsTooLittleValidationData) {
  TrainPeriods(4, 0.2);
  TrainPeriods(4, 1.2);
  job_.TrainAndEvaluate(93);  // of 100
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
}

TEST_F(RisenLossTest, IsNothingForHalfAnEpochWhereTheModelIsAsGood) {
  TrainPeriods(4, 0.2);
  TrainPeriods(4, 1.2);
  RunEpoch(930);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
  EXPECT_NE(recovery().healthy.checkpoint.snapshot, job_.state().evaluated_snapshot);
}

TEST_F(RisenLossTest, IsNothingWhereItFallsAgain) {
  for (int i = 0; i < 3; ++i) {
    TrainPeriods(7, 1.2);
    TrainPeriods(1, 0.3);
  }
  RunEpoch(930);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
  EXPECT_EQ(recovery().healthy.checkpoint.snapshot, job_.state().evaluated_snapshot);
}

TEST_F(RisenLossTest, AWorseModelAloneIsNothing) {
  TrainPeriods(8, 0.2);
  RunEpoch(600);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
}

TEST_F(RisenLossTest, WhatItWasIsKnownToTheNextController) {
  job_.RestartController();
  job_.JoinAll("-again");
  progress_ = {};
  Train(1, 1.2);
  TrainPeriods(8, 1.2);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
}

class ChanceLossTest : public WatchTest {
 protected:
  ChanceLossTest() {
    JobSettings settings = DivergingJob(OnDivergence::Action::kFail);
    settings.chance_loss = 2.3;
    job_ = Harness(settings);
    job_.Begin();
    job_.JoinAll();
  }
};

TEST_F(ChanceLossTest, AFirstLossThatIsWreckedAlreadyIsNoMeasure) {
  Train(1000, 1e12);
  job_.TrainOnly();
  EvaluateAs(500);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("that of a model that knows nothing is 2.3"));
}

TEST_F(ChanceLossTest, AModelNearChanceWhoseLossFallsLearns) {
  progress_.grown_layer = "conv1";
  progress_.weight_growth = 3;
  Train(1000, 2.2);
  job_.TrainOnly();
  EvaluateAs(160);
  ASSERT_GT(recovery().best_top1, 0);
  Train(1000, 1.9);
  job_.TrainOnly();
  EvaluateAs(140);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
}

TEST_F(ChanceLossTest, FewValidationExamplesAreNoExcuse) {
  progress_.grown_layer = "conv1";
  progress_.weight_growth = 3;
  Train(1000, 2.8);
  job_.TrainOnly();
  job_.EvaluateAs(40);  // of 100
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("the training loss, 2.8, is no better"));
}

TEST_F(WatchTest, AModelAtChanceThatNeverLearnedMayBeSlow) {
  progress_.grown_layer = "conv1";
  progress_.weight_growth = 1.2;
  Train(1000, 2);
  job_.TrainOnly();
  EvaluateAs(118);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
}

TEST_F(WatchTest, WhatOfTheWeightsComesOfAHighRateIsKept) {
  const auto sign = [&](std::uint64_t dead, double growth) {
    progress_.dead_units = {{.layer = "fc1", .units = 100, .dead = dead}};
    progress_.grown_layer = "fc2";
    progress_.weight_growth = growth;
    Train(1000, 1);
    job_.TrainOnly();
    EvaluateAs(900);
    return job_.state().recovery.sign;
  };
  EXPECT_EQ(sign(49, 9.9), "");
  EXPECT_EQ(sign(50, 9.9), "50 of the 100 units of layer fc1 are dead");
  EXPECT_EQ(sign(49, 10), "the weights of layer fc2 have grown to 10 times what they were");
}

}  // namespace
}  // namespace adamant::controller
