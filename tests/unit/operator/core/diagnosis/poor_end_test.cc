#include "operator/core/diagnosis/poor_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "operator/core/diagnosis/recovery.h"
#include "operator/core/diagnosis/reservations.h"
#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kOfChance = 2;

class PoorEndTest : public testing::Test {
 protected:
  PoorEndTest() {
    settings_.chance_loss = kOfChance;
    settings_.rate = 0.0002;
    state_.epoch = 3;
    state_.row = {.epoch = 3, .trained = 20'000, .training_loss = 1.2};
  }

  std::string EndsWith(double earlier, double last) {
    state_.earlier_loss = earlier;
    state_.row.training_loss = last;
    return ReservationsOf(settings_, state_);
  }

  JobSettings settings_;
  JobState state_;
};

TEST_F(PoorEndTest, ALossThatStillFallsAsksForMoreEpochsOrAHigherRate) {
  EXPECT_EQ(EndsWith(1.8, 1.2),
            "the training loss ended at 1.2, 60% of that of naming classes at random, and still "
            "fell; try more epochs (spec.runPolicy.epochs) or a higher spec.optimiser.rate");
  EXPECT_EQ(EndsWith(0, 1.2),
            "the training loss ended at 1.2, 60% of that of naming classes at random; try more "
            "epochs (spec.runPolicy.epochs) or another spec.optimiser.rate")
      << "of one epoch";
  EXPECT_EQ(EndOfSuccess(settings_, state_), EndKind::kPoor);
}

TEST_F(PoorEndTest, StrongWeightDecayComesBeforeAllElse) {
  settings_.hindrances.weight_decay = 0.1;
  EXPECT_THAT(
      EndsWith(1.8, 1.2),
      HasSubstr("try first a lower weight decay than 0.1 (spec.optimiser.weightDecay), then "
                "more epochs"));
  settings_.hindrances.weight_decay = 0.001;
  EXPECT_THAT(EndsWith(1.8, 1.2), Not(HasSubstr("decay")));
}

TEST_F(PoorEndTest, OneThatDoesNotAsksForAnotherRate) {
  const std::string flat =
      "the training loss ended at 1.2, 60% of that of naming classes at random, and hardly fell in "
      "the last epoch; try another spec.optimiser.rate, or one that falls "
      "(spec.optimiser.schedule)";
  EXPECT_EQ(EndsWith(1.21, 1.2), flat);
  EXPECT_EQ(EndsWith(1.1, 1.2), flat);
}

TEST_F(PoorEndTest, OneThatDoesNotAtTheEndOfAScheduleIsNotAskedForASchedule) {
  settings_.hindrances.rate_falls = true;
  EXPECT_EQ(EndsWith(1.21, 1.2),
            "the training loss ended at 1.2, 60% of that of naming classes at random, and hardly "
            "fell in the last epoch, as the rate had fallen; try more epochs "
            "(spec.runPolicy.epochs) or a higher spec.optimiser.rate");
}

TEST_F(PoorEndTest, FewBatchesAreAskedToBeMore) {
  settings_.batch_size = 32;
  state_.training_examples = 4'000;  // 125 batches an epoch
  EXPECT_THAT(EndsWith(1.8, 1.2),
              HasSubstr("try more epochs (spec.runPolicy.epochs), smaller batches "
                        "(spec.data.batchSize) or a higher"));
  state_.training_examples = 8'000;
  EXPECT_THAT(EndsWith(1.8, 1.2), HasSubstr("try more epochs (spec.runPolicy.epochs) or a higher"));
}

TEST_F(PoorEndTest, AnAccuracyThatSaysNothingIsNamed) {
  state_.row.validated = 60;
  state_.row.validation_loss = 1.2;
  state_.row.top1 = 0.26;  // of about e^2 classes
  EXPECT_THAT(EndsWith(1.8, 1.2),
              HasSubstr("top-1 is hardly better than naming classes at random, and the training "
                        "loss ended at 1.2"));
  state_.row.top1 = 0.29;
  EXPECT_THAT(EndsWith(1.8, 1.2), Not(HasSubstr("hardly better")));
}

TEST_F(PoorEndTest, WhatIsUsefulIsQuietUnlessTheLossFallsSteeply) {
  EXPECT_EQ(EndsWith(1, 0.99), "");
  EXPECT_EQ(EndOfSuccess(settings_, state_), EndKind::kOther);
  EXPECT_NE(EndsWith(1.1, 1), "");
  EXPECT_NE(EndsWith(0.6, 0.53), "") << "it fell by more than a tenth";
  EXPECT_EQ(EndsWith(0.6, 0.55), "");
  EXPECT_EQ(EndsWith(0.6, 0.49), "");
}

TEST_F(PoorEndTest, AnEpochInWhichTheModelBecameAGoodOneIsNotPoor) {
  state_.row.validated = 1'000;
  state_.row.validation_loss = 0.3;
  EXPECT_EQ(EndsWith(0, 1.2), "");
  state_.row.validation_loss = 1.1;
  EXPECT_NE(EndsWith(0, 1.2), "");
}

TEST_F(PoorEndTest, TheOnlyEpochOfAJobFallsFromItsMeanToItsEnd) {
  state_.row.validated = 1'000;
  state_.row.validation_loss = 0.8;
  EXPECT_THAT(EndsWith(0, 1.2), HasSubstr("try more epochs"));
  EXPECT_EQ(EndsWith(0, 0.88), "") << "it hardly fell";
  state_.row.validation_loss = 0.49;
  EXPECT_EQ(EndsWith(0, 1.2), "");
}

TEST_F(PoorEndTest, WhatIsNotKnownIsNotJudged) {
  settings_.chance_loss = 0;
  EXPECT_EQ(EndsWith(1.8, 1.2), "");
  settings_.chance_loss = kOfChance;
  EXPECT_EQ(EndsWith(1.8, std::nan("")), "");
  state_.row.trained = 0;
  EXPECT_EQ(EndsWith(1.8, 1.2), "");
}

TEST_F(PoorEndTest, ATargetThatWasReachedIsGoodEnough) {
  settings_.target_accuracy = 0.4;
  state_.accuracy = 0.45;
  EXPECT_EQ(EndsWith(1.8, 1.2), "");
  state_.accuracy = 0.35;
  EXPECT_THAT(EndsWith(1.8, 1.2),
              HasSubstr("was not reached: top-1 is 0.35 after 3 epochs; the "
                        "training loss ended at 1.2"));
}

TEST_F(PoorEndTest, WhatTheManifestHasOfItIsTheFirstAdvice) {
  settings_.hindrances.uncorrected = true;
  settings_.epoch_completion = 0.1;
  EXPECT_THAT(EndsWith(1.8, 1.2),
              HasSubstr("still fell; try a higher spec.runPolicy.epochCompletion than 0.1, "
                        "spec.optimiser.asynchrony: Auto (it is Off, with several workers), more "
                        "epochs"));
  EXPECT_THAT(EndsWith(1.2, 1.2), HasSubstr("; try a higher spec.runPolicy.epochCompletion"));
  EXPECT_NE(EndsWith(0.4, 0.3), "") << "most of the examples were never trained";
  EXPECT_EQ(EndsWith(0.4, 0.15), "");
  settings_.epoch_completion = 0.5;
  EXPECT_EQ(EndsWith(0.4, 0.3), "");
  EXPECT_THAT(EndsWith(1.8, 1.2), Not(HasSubstr("epochCompletion")));
}

TEST_F(PoorEndTest, WorkersThatBeganOnUntrainedWeightsMayBeWhy) {
  EXPECT_EQ(EndsWith(0.5, 0.45), "");
  settings_.hindrances.untrained_start = true;
  EXPECT_THAT(EndsWith(0.5, 0.45),
              HasSubstr("; try spec.distribution.warmStart left out (with 0, several workers begin "
                        "on weights that nobody has trained), more epochs"));
  EXPECT_EQ(EndsWith(0.4, 0.15), "");
  state_.recovery.first_loss = kOfChance;
  EXPECT_THAT(EndsWith(2, 1.99),
              HasSubstr("the loss has hardly moved; try spec.distribution.warmStart left out"));
}

TEST_F(PoorEndTest, OneAdviceIsEnough) {
  state_.recovery.sign = "the weights of layer fc1 have grown to 12 times what they were";
  EXPECT_THAT(EndsWith(1.8, 1.2), HasSubstr("probably too high"));
  EXPECT_THAT(EndsWith(1.8, 1.2), Not(HasSubstr("still fell")));
  settings_.hindrances.uncorrected = true;
  EXPECT_THAT(EndsWith(1.8, 1.2), HasSubstr("; try spec.optimiser.asynchrony: Auto"));
}

TEST_F(PoorEndTest, WhatWasUndoneIsNoEarlierEpoch) {
  state_.earlier_loss = 1.8;
  TurnBack(state_, 0, 0.5);
  EXPECT_EQ(state_.earlier_loss, 0);
}

TEST(PoorEndOfAJobTest, TheMessageHasItAlsoAfterAnotherController) {
  JobSettings settings = SmallJob();
  settings.chance_loss = kOfChance;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  double sum = 0;
  for (DataEpoch epoch = 1; epoch <= 2; ++epoch) {
    sum += 2'000 * (epoch == 1 ? 1.8 : 1.2);
    job.Tell(
        kWorker0,
        Heartbeat{.progress = WorkerProgress{.trained_examples = 2'000 * epoch, .loss_sum = sum}});
    job.TrainOnly();
    job.Tell(kData0,
             Evaluated{.epoch = epoch,
                       .snapshot = job.state().row.snapshot,
                       .examples = 100,
                       .correct = 50,
                       .loss_sum = 115});
  }
  job.RestartController();
  job.JoinAll("-again");
  job.Handle(Exported{.snapshot = job.state().evaluated_snapshot, .status = absl::OkStatus()});
  EXPECT_EQ(job.state().phase, Phase::kSucceeded);
  EXPECT_THAT(job.state().message, HasSubstr("ended at 1.2, 60% of that of naming"));
  EXPECT_THAT(job.state().message, HasSubstr("and still fell"));
}

}  // namespace
}  // namespace adamant::controller
