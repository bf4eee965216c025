#include "operator/core/diagnosis/high_rate.h"

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

constexpr double kChance = 2.3;
constexpr char kGrown[] = "the weights of layer fc1 have grown to 12 times what they were";

class HighRateTest : public testing::Test {
 protected:
  HighRateTest() {
    settings_.chance_loss = kChance;
    settings_.rate = 0.2;
    state_.epoch = 3;
    state_.row = {.epoch = 3, .trained = 20'000, .training_loss = 0.69};
  }

  JobSettings settings_;
  JobState state_;
};

TEST_F(HighRateTest, APoorModelWithASignOfItIsTold) {
  state_.recovery.sign = kGrown;
  EXPECT_EQ(ReservationsOf(settings_, state_),
            std::string("the training loss ended at 0.69, 30% of that of naming classes at "
                        "random, and ") +
                kGrown +
                ": the learning rate was probably too high; try a lower spec.optimiser.rate, or a "
                "warm-up (spec.optimiser.schedule.warmUp)");
  settings_.hindrances.momentum = 0.99;
  EXPECT_THAT(ReservationsOf(settings_, state_),
              HasSubstr("try a lower spec.optimiser.momentum than 0.99, a lower spec.opt"));
}

TEST_F(HighRateTest, AfterVeryFewBatchesMoreOfThemAreNamedFirst) {
  state_.recovery.sign = kGrown;
  settings_.batch_size = 320;
  settings_.workers = 3;
  settings_.threads_per_worker = 1;
  settings_.training_examples = 6'000;
  EXPECT_THAT(ReservationsOf(settings_, state_),
              HasSubstr("; the job has only 57 batches in all for 3 training threads: try more "
                        "epochs (spec.runPolicy.epochs), smaller batches (spec.data.batchSize), "
                        "fewer workers, or a lower spec.optimiser.rate"));
  settings_.hindrances.uncorrected = true;
  EXPECT_THAT(ReservationsOf(settings_, state_),
              HasSubstr(" training threads: try spec.optimiser.asynchrony: Auto (it is Off, with "
                        "several workers), more epochs"));
}

TEST_F(HighRateTest, WithoutASignTheDataMayBeWhy) {
  EXPECT_EQ(ReservationsOf(settings_, state_), "");
}

TEST_F(HighRateTest, AGoodModelIsNotJudgedByItsWeights) {
  state_.recovery.sign = kGrown;
  state_.row.training_loss = 0.99 * kPoorShare * kChance;
  EXPECT_EQ(ReservationsOf(settings_, state_), "");
  state_.row.training_loss = 1.01 * kPoorShare * kChance;
  EXPECT_NE(ReservationsOf(settings_, state_), "");
  state_.row.trained = 0;
  EXPECT_EQ(ReservationsOf(settings_, state_), "") << "not measured";
  state_.row.trained = 20'000;
  settings_.chance_loss = 0;
  EXPECT_EQ(ReservationsOf(settings_, state_), "") << "not known";
}

TEST_F(HighRateTest, AJobThatWentBackSaysHowOftenAndWhereItEnded) {
  state_.recovery.rate_factor = 0.125;
  state_.row.training_loss = 0.01;
  EXPECT_EQ(ReservationsOf(settings_, state_),
            "the job went back 3 times as training diverged, and ended at learning rate 0.025");
  state_.recovery.rate_factor = 0.5;
  state_.row.training_loss = 0.69;
  EXPECT_EQ(ReservationsOf(settings_, state_),
            "the job went back 1 time as training diverged, and ended at learning rate 0.1; the "
            "training loss ended at 0.69, 30% of that of naming classes at random: the learning "
            "rate may still have been too high; try a lower spec.optimiser.rate, or a warm-up "
            "(spec.optimiser.schedule.warmUp)");
}

TEST_F(HighRateTest, TheNextAttemptHasSignsOfItsOwn) {
  state_.recovery.sign = kGrown;
  TurnBack(state_, 0, 0.5);
  EXPECT_EQ(state_.recovery.sign, "");
}

TEST_F(HighRateTest, UpdatesThatWereLostWithAllCopiesAreTold) {
  state_.row.training_loss = 0.01;
  state_.histories = {{.updates = 5, .rolled_back = 0}, {.updates = 5, .rolled_back = 2}};
  state_.slots.resize(SlotIndex(settings_, {Role::kWorker, 0}) + 2);
  state_.slots.back().incarnation = 1;
  EXPECT_EQ(ReservationsOf(settings_, state_), "") << "all workers have sent again what they had";
  state_.slots.back().incarnation = 2;
  EXPECT_EQ(ReservationsOf(settings_, state_),
            "2 updates of 1 bucket were rolled back with all copies; what no worker sent again of "
            "that counts as trained");
  state_.updates_lost = 980;
  EXPECT_EQ(ReservationsOf(settings_, state_),
            "at least 980 updates were lost with all copies, and their examples count as trained")
      << "as metrics.csv says";
}

TEST_F(HighRateTest, OneAdviceIsEnough) {
  state_.recovery.sign = kGrown;
  state_.row.validated = 1'000;
  state_.row.top1 = 0.5;
  state_.best_epoch = 1;
  state_.best_accuracy = 0.9;
  EXPECT_THAT(ReservationsOf(settings_, state_), HasSubstr("epoch 1 was the best"));
  EXPECT_THAT(ReservationsOf(settings_, state_), Not(HasSubstr("probably too high")));
}

/// A job of two epochs.
class HighRateOfAJobTest : public testing::Test {
 protected:
  HighRateOfAJobTest() : job_(Settings()) {
    job_.Begin();
    job_.JoinAll();
  }

  static JobSettings Settings() {
    JobSettings settings = SmallJob();
    settings.chance_loss = kChance;
    return settings;
  }

  void Export() {
    job_.Handle(Exported{.snapshot = job_.state().evaluated_snapshot, .status = absl::OkStatus()});
  }

  Harness job_;
};

TEST_F(HighRateOfAJobTest, TheMessageHasItAlsoAfterAnotherController) {
  for (DataEpoch epoch = 1; epoch <= 2; ++epoch) {
    const auto examples = 2'000 * epoch;
    job_.Tell(kWorker0,
              Heartbeat{.progress = WorkerProgress{.trained_examples = examples,
                                                   .loss_sum = static_cast<double>(examples),
                                                   .grown_layer = "fc1",
                                                   .weight_growth = 12}});
    job_.TrainAndEvaluate(80);
  }
  job_.RestartController();
  job_.JoinAll("-again");
  Export();
  EXPECT_EQ(job_.state().phase, Phase::kSucceeded);
  EXPECT_THAT(job_.state().message, HasSubstr(kGrown));
}

TEST_F(HighRateOfAJobTest, ABetterEpochIsInTheMessageToo) {
  job_.TrainAndEvaluate(90);
  job_.TrainAndEvaluate(50);
  Export();
  EXPECT_EQ(job_.state().phase, Phase::kSucceeded);
  EXPECT_THAT(job_.state().message, HasSubstr("epoch 1 was the best"));
}

}  // namespace
}  // namespace adamant::controller
