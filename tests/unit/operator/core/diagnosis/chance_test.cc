#include "operator/core/diagnosis/chance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

EpochResult Row(std::uint64_t validated, std::uint64_t correct) {
  EpochResult row;
  row.epoch = 2;
  row.validated = validated;
  row.top1 = static_cast<double>(correct) / static_cast<double>(validated);
  return row;
}

TEST(ChanceTest, AModelMustBeatTheMostFrequentClassByThreeStandardDeviations) {
  EXPECT_TRUE(IsAtChance(Row(10'000, 0), 1'135));
  EXPECT_TRUE(IsAtChance(Row(10'000, 1'135), 1'135));
  EXPECT_TRUE(IsAtChance(Row(10'000, 1'230), 1'135));  // one deviation is 31.7
  EXPECT_FALSE(IsAtChance(Row(10'000, 1'231), 1'135));
}

TEST(ChanceTest, WhatCannotBeToldIsNotJudged) {
  EXPECT_FALSE(IsAtChance(Row(10'000, 1'000), 0)) << "an older data server";
  EXPECT_FALSE(IsAtChance(Row(999, 100), 100));
  EXPECT_TRUE(IsAtChance(Row(1'000, 100), 100));
  EXPECT_FALSE(IsAtChance(Row(1'000, 900), 900)) << "naming one class may be the best there is";
  EXPECT_TRUE(IsAtChance(Row(1'000, 899), 899));
  EXPECT_FALSE(IsAtChance(EpochResult{}, 0)) << "no validation data";
}

TEST(ChanceTest, TheTextsNameTheNumbersAndTheFieldsToChange) {
  EXPECT_EQ(ChanceWarning(Row(10'000, 1'135), 1'135, 2.3),
            "epoch 2: top-1 0.1135 is no better than naming the most frequent class "
            "(1135 of 10000)");
  EXPECT_EQ(
      ChanceFailure(Row(10'000, 660), {}, 2.3),
      "training did not learn: top-1 0.0660 is no better than naming the most frequent class; "
      "try a lower spec.optimiser.rate, a warm-up (spec.optimiser.schedule.warmUp) or, if the "
      "loss has hardly moved, a higher rate; if that does not help, labels may not belong to their "
      "images");
}

TEST(ChanceTest, ValidationDataOfOneClassIsTold) {
  EXPECT_EQ(OneClassWarning(Row(500, 500), 500),
            "epoch 2: all 500 validation examples are of one class: top-1 does not tell whether "
            "the model knows the others (spec.data.validation)");
  EXPECT_EQ(OneClassWarning(Row(500, 500), 499), "");
  EXPECT_EQ(OneClassWarning(Row(500, 500), 0), "") << "not known";
  EXPECT_EQ(OneClassWarning(Row(1, 1), 1), "");
}

TEST(ChanceTest, AfterADivergenceOnlyALowerRateIsAdvised) {
  EpochResult row = Row(10'000, 660);
  row.trained = 60'000;
  row.training_loss = 2.3;
  EXPECT_EQ(
      ChanceFailure(row, {.first_loss = 2.3, .divergence = "NaN"}, 2.3),
      "training did not learn: top-1 0.0660 is no better than naming the most frequent class; "
      "try a lower spec.optimiser.rate, or a warm-up (spec.optimiser.schedule.warmUp)");
}

TEST(ChanceTest, WhereTheLossHasHardlyMovedAHigherRateIsTheFirstAdvice) {
  EpochResult row = Row(10'000, 660);
  row.trained = 60'000;
  const auto advice = [&](double first, double last, double chance_loss = 2.3) {
    row.training_loss = last;
    return ChanceFailure(row, {.first_loss = first}, chance_loss);
  };
  EXPECT_EQ(
      advice(2.35, 2.35),
      "training did not learn: top-1 0.0660 is no better than naming the most frequent class, and "
      "the loss has hardly moved; try a higher spec.optimiser.rate, or else a lower one with a "
      "warm-up (spec.optimiser.schedule.warmUp); if that does not help, labels may not belong to "
      "their images");
  const auto hardly_moved = HasSubstr("and the loss has hardly moved");
  EXPECT_THAT(advice(2.8, 2.3), hardly_moved) << "the first weights were drawn large";
  EXPECT_THAT(advice(2.35, 2.35, 0), hardly_moved);
  EXPECT_THAT(advice(2.35, 2.1), Not(hardly_moved)) << "it learns something";
  EXPECT_THAT(advice(2.35, 2.6), Not(hardly_moved));
  EXPECT_THAT(advice(2.35, std::nan("")), Not(hardly_moved));
  EXPECT_THAT(advice(1e6, 2.3), Not(hardly_moved)) << "the weights were wrecked at once";
  EXPECT_THAT(advice(0, 2.3), Not(hardly_moved)) << "not known";
  row.trained = 0;
  EXPECT_THAT(advice(2.3, 2.3), Not(hardly_moved)) << "not measured";
}

TEST(ChanceTest, WhatElseTheManifestHasIsNamed) {
  EpochResult row = Row(10'000, 660);
  row.trained = 60'000;
  row.training_loss = 2.3;
  const auto advice = [&](const Hindrances& hindrances) {
    return ChanceFailure(row, {.first_loss = 2.3}, 2.3, hindrances);
  };
  EXPECT_THAT(advice({.weight_decay = 0.5}),
              HasSubstr("; try first a lower weight decay than 0.5 (spec.optimiser.weightDecay), "
                        "then a higher spec.optimiser.rate"));
  EXPECT_THAT(advice({.weight_decay = 0.001}), Not(HasSubstr("decay")));
  EXPECT_THAT(advice({.momentum = 0.99}), Not(HasSubstr("momentum"))) << "it moves too little";
  EXPECT_THAT(advice({.uncorrected = true}),
              HasSubstr("has hardly moved; try spec.optimiser.asynchrony: Auto (it is Off, with "
                        "several workers), a higher spec.optimiser.rate"));
  EXPECT_THAT(
      advice({.frozen = {"conv1", "fc1"}}),
      HasSubstr(", or to train conv1, fc1, which spec.optimiser.layers freezes with rate 0; "
                "if that does not help, labels"));
  EXPECT_THAT(advice({.frozen = {"a", "b", "c", "d", "e"}}),
              HasSubstr(", or to train a, b, c and 2 more, which"));
  EXPECT_THAT(advice({.target = 0.01, .length = {.batches = 47}}),
              testing::EndsWith("; the job ended early, at spec.runPolicy.targetAccuracy, 0.01, "
                                "which what has learned nothing may reach: raise it, or leave it "
                                "out"));
  EXPECT_THAT(advice({.weight_decay = 0.5, .frozen = {"fc1"}, .all_frozen = true}),
              testing::EndsWith(", and the loss has hardly moved; no layer trains, as "
                                "spec.optimiser.layers freezes each with rate 0"));
}

TEST(ChanceTest, WhatIsHardlyBetterThanChanceHasLearnedLittle) {
  EpochResult row = Row(2'000, 285);
  row.trained = 6'000;
  const auto little = [&](double loss, double chance_loss = 2.3) {
    row.training_loss = loss;
    return LearnedLittle(row, {.first_loss = 2.3}, chance_loss);
  };
  EXPECT_EQ(
      little(2.29),
      "the model has learned little: the training loss, 2.29, is hardly below that of naming "
      "classes at random, 2.3, "
      "and the loss has hardly moved; try a higher spec.optimiser.rate, or else a lower one "
      "with a warm-up (spec.optimiser.schedule.warmUp); if that does not help, labels may not "
      "belong to their images");
  EXPECT_THAT(little(2.2), HasSubstr("has learned little"));
  EXPECT_THAT(little(2.5),
              HasSubstr("the training loss, 2.5, is above that of naming classes at random, 2.3"));
  EXPECT_EQ(little(2.18), "");
  EXPECT_EQ(little(2.29, 0), "") << "not known";
  EXPECT_EQ(little(std::nan("")), "");
  row.trained = 0;
  EXPECT_EQ(little(2.29), "") << "not measured";
}

TEST(ChanceTest, TheTrainingLossTellsWhereThereIsTooLittleValidationData) {
  EpochResult row = Row(999, 100);
  row.trained = row.counted = 1'000;
  row.training_loss = 2.29;
  EXPECT_TRUE(HasChanceLoss(row, 100, 1'000, 2.3));
  EXPECT_FALSE(HasChanceLoss(row, 100, 1'000, 0)) << "not known";
  EXPECT_THAT(ChanceFailure(row, {}, 2.3), HasSubstr("the training loss, 2.29, is no better"));
  EXPECT_THAT(ChanceWarning(row, 100, 2.3), HasSubstr("epoch 2: the training loss, 2.29,"));
  row.training_loss = 2.2;
  EXPECT_FALSE(HasChanceLoss(row, 100, 1'000, 2.3));
  row.training_loss = std::nan("");
  EXPECT_TRUE(HasChanceLoss(row, 100, 1'000, 2.3));
  row.validated = 1'000;
  row.training_loss = 2.3;
  EXPECT_FALSE(HasChanceLoss(row, 100, 1'000, 2.3)) << "the validation data tells";
}

// Labels that do not belong to their images.
TEST(ChanceTest, AModelThatKnowsItsTrainingDataAloneIsCalledThat) {
  EpochResult row = Row(200, 14);
  row.trained = row.counted = 1'000;
  row.training_loss = 0.01;
  row.validation_loss = 102.7;
  EXPECT_TRUE(IsUselessByHeart(row, 25, 2.3));
  EXPECT_THAT(ChanceWarning(row, 25, 2.3), HasSubstr("top-1 0.0700 is no better than naming"));
  EXPECT_THAT(ChanceFailure(row, {}, 2.3),
              AllOf(HasSubstr("; the loss on the validation data, 102.7, is above that of naming "
                              "classes at random, 2.3, and that on the training data is 0.01: "
                              "labels do not belong to their images"),
                    Not(HasSubstr("rate"))));
  row.top1 = 0.3;
  EXPECT_FALSE(IsUselessByHeart(row, 25, 2.3)) << "it beats naming the most frequent class";
  EXPECT_FALSE(LearnedByHeart(row, 2.3).empty()) << "which is told all the same";
  row.validation_loss = 2.2;
  EXPECT_EQ(LearnedByHeart(row, 2.3), "");
  row.validation_loss = 2.4;
  row.training_loss = 1.2;
  EXPECT_EQ(LearnedByHeart(row, 2.3), "") << "it has not learned these either";
}

TEST(ChanceTest, FewValidationExamplesMayAllBeWrongByChance) {
  EpochResult row = Row(99, 5);
  row.training_loss = 0.01;
  row.validation_loss = 3;
  EXPECT_FALSE(IsUselessByHeart(row, 12, 2.3));
  EXPECT_FALSE(IsUselessByHeart(Row(100, 5), 0, 2.3)) << "an older data server";
}

TEST(ChanceTest, AModelThatBeatsNamingTheMostFrequentClassHasLearnedWhateverTheLoss) {
  EpochResult row = Row(900, 127);
  row.trained = row.counted = 900;
  row.training_loss = 2.9;
  EXPECT_TRUE(HasChanceLoss(row, 100, 1'800, 2.3));  // one deviation is 9.4
  EXPECT_FALSE(HasChanceLoss(row, 98, 1'800, 2.3));
  EXPECT_TRUE(HasChanceLoss(row, 0, 1'800, 2.3)) << "not known";
}

TEST(ChanceTest, WhatWasTrainedIsCountedOverTheJobAsEpochsMayBeSmall) {
  EpochResult row = Row(900, 77);
  row.trained = row.counted = 500;
  row.training_loss = 2.3;
  EXPECT_FALSE(HasChanceLoss(row, 100, 999, 2.3));
  EXPECT_TRUE(HasChanceLoss(row, 100, 1'000, 2.3));
  row.trained = 249;
  EXPECT_FALSE(HasChanceLoss(row, 100, 1'000, 2.3)) << "it is that of less than half of the epoch";
  row.counted = 60'000;
  row.trained = 999;
  EXPECT_FALSE(HasChanceLoss(row, 100, 60'000, 2.3));
  row.trained = 1'000;
  EXPECT_TRUE(HasChanceLoss(row, 100, 60'000, 2.3));
  row.counted = row.trained = 0;
  EXPECT_FALSE(HasChanceLoss(row, 100, 60'000, 2.3)) << "not measured";
}

/// A job of two epochs.
class ChanceOfAJobTest : public testing::Test {
 protected:
  ChanceOfAJobTest() {
    job_.Begin();
    job_.JoinAll();
  }

  Harness::Actions Train(std::uint64_t correct,
                         std::uint64_t most_frequent = 100,
                         std::uint64_t examples = 1'000) {
    job_.TrainOnly();
    return job_.Tell(kData0,
                     Evaluated{.epoch = job_.state().epoch,
                               .snapshot = job_.state().row.snapshot,
                               .examples = examples,
                               .correct = correct,
                               .loss_sum = 25,
                               .most_frequent = most_frequent});
  }

  Harness::Actions Export(absl::Status status = absl::OkStatus()) {
    return job_.Handle(
        Exported{.snapshot = job_.state().evaluated_snapshot, .status = std::move(status)});
  }

  static std::vector<std::string> Alarms(const Harness::Actions& actions) {
    std::vector<std::string> texts;
    for (const Note& note : Pick<Note>(actions)) {
      if (note.kind == Note::Kind::kAlarm) {
        texts.push_back(note.text);
      }
    }
    return texts;
  }

  Harness job_;
};

TEST_F(ChanceOfAJobTest, OneThatEndsAtChanceFailsOnceItsModelIsWritten) {
  Train(100);
  EXPECT_THAT(Pick<controller::Export>(Train(101)), SizeIs(1));
  EXPECT_EQ(job_.state().phase, Phase::kEvaluating);
  Export();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_EQ(job_.state().message, ChanceFailure(job_.state().row, {}, 0));
  EXPECT_EQ(job_.controller().Report().end, EndKind::kDidNotLearn);
}

TEST_F(ChanceOfAJobTest, OneWhoseLossHasHardlyMovedIsToldToRaiseTheRate) {
  job_.Tell(kWorker0,
            Heartbeat{.progress = WorkerProgress{.trained_examples = 2'000, .loss_sum = 4'600}});
  Train(100);
  job_.Tell(kWorker0,
            Heartbeat{.progress = WorkerProgress{.trained_examples = 4'000, .loss_sum = 9'200}});
  Train(100);
  Export();
  EXPECT_THAT(job_.state().message, HasSubstr("and the loss has hardly moved"));
}

TEST_F(ChanceOfAJobTest, TheUserIsWarnedAtTheFirstSuchEpochOnly) {
  EXPECT_THAT(Alarms(Train(100)),
              testing::ElementsAre("epoch 1: top-1 0.1000 is no better than naming the most "
                                   "frequent class (100 of 1000)"));
  EXPECT_THAT(Alarms(Train(100)), IsEmpty());
}

TEST_F(ChanceOfAJobTest, OneThatLearnsInItsLastEpochSucceeds) {
  Train(100);
  EXPECT_THAT(Alarms(Train(500)), IsEmpty());
  Export();
  EXPECT_EQ(job_.state().phase, Phase::kSucceeded);
  EXPECT_EQ(job_.state().message, "");
}

TEST_F(ChanceOfAJobTest, OneThatForgetsInItsLastEpochFailsAsThatModelIsWritten) {
  EXPECT_THAT(Alarms(Train(900)), IsEmpty());
  EXPECT_THAT(Alarms(Train(100)), SizeIs(1));
  Export();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
}

TEST_F(ChanceOfAJobTest, OneOfAnOlderDataServerIsNotJudged) {
  Train(100, 0);
  EXPECT_THAT(Alarms(Train(100, 0)), IsEmpty());
  Export();
  EXPECT_EQ(job_.state().phase, Phase::kSucceeded);
}

TEST_F(ChanceOfAJobTest, OneWhoseEpochsAreSmallIsJudgedByAllOfThem) {
  JobSettings settings = SmallJob();
  settings.epochs = 12;
  settings.chance_loss = 2.3;
  job_ = Harness(settings);
  job_.Begin();
  job_.JoinAll();
  WorkerProgress progress;
  for (int epoch = 1; epoch <= 12; ++epoch) {  // of 90 examples
    progress.trained_examples += 90;
    progress.loss_sum += 90 * 2.31;
    job_.Tell(kWorker0, Heartbeat{.progress = progress});
    EXPECT_THAT(Alarms(Train(100, 100, 999)), SizeIs(epoch == 12 ? 1 : 0)) << epoch;
  }
  Export();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("the training loss, 2.31, is no better"));
  EXPECT_THAT(job_.state().message, HasSubstr("has hardly moved; try a higher"));
}

TEST_F(ChanceOfAJobTest, OneWithLittleValidationDataIsNotJudged) {
  Train(100, 100, 999);
  EXPECT_THAT(Alarms(Train(100, 100, 999)), IsEmpty());
  Export();
  EXPECT_EQ(job_.state().phase, Phase::kSucceeded);
}

TEST_F(ChanceOfAJobTest, TheVerdictSurvivesTheControllerThatReachedIt) {
  Train(100);
  Train(100);
  job_.RestartController();
  EXPECT_THAT(Pick<controller::Export>(job_.JoinAll("again")), SizeIs(1));
  Export();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("did not learn"));
}

TEST_F(ChanceOfAJobTest, ResumedItWritesTheModelOnceMoreAndFailsAgain) {
  Train(100);
  Train(100);
  Export();
  job_.RestartController();
  const auto actions = job_.JoinAll("again");
  EXPECT_THAT(Pick<controller::Export>(actions), SizeIs(1));
  EXPECT_THAT(Sent<OpenEpoch>(actions), IsEmpty());
  EXPECT_THAT(Pick<Note>(Export()), SizeIs(1)) << "the phase";
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_EQ(job_.state().message,
            ChanceFailure(job_.state().row, {}, 0) +
                "; or, if all its processes were killed, begin the job anew: what was acknowledged "
                "last was lost with them");
  EXPECT_EQ(job_.controller().Report().end, EndKind::kLostLearned);
  EXPECT_THAT(job_.results(), SizeIs(2));
}

TEST_F(ChanceOfAJobTest, OneThatDivergedIsNotSaidToHaveLostWhatItLearned) {
  JobSettings settings = SmallJob();
  settings.on_divergence.action = OnDivergence::Action::kContinue;
  job_ = Harness(settings);
  job_.Begin();
  job_.JoinAll();
  job_.Tell(kWorker0, Failure{.message = "the loss is not finite", .diverged = true});
  Train(100);
  Train(100);
  Export();
  job_.RestartController();
  job_.JoinAll("again");
  Export();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, Not(HasSubstr("begin the job anew")));
}

TEST_F(ChanceOfAJobTest, AModelThatCannotBeWrittenIsWhatIsTold) {
  Train(100);
  Train(100);
  Export(absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("disk full"));
}

}  // namespace
}  // namespace adamant::controller
