#include "operator/core/diagnosis/job_length.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/diagnosis/chance.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using testing::HasSubstr;
using testing::Not;

JobLength Length(std::uint64_t batch_size, double warm_up_epochs, double warm_up_examples = 0) {
  JobSettings settings = SmallJob();  // of 1,000 examples for two workers
  settings.batch_size = batch_size;
  settings.threads_per_worker = 3;
  settings.warm_up_epochs = warm_up_epochs;
  settings.warm_up_examples = warm_up_examples;
  JobState state;
  state.row.epoch = 5;
  return LengthOf(settings, state);
}

TEST(JobLengthTest, BatchesOfAnEpochThatAreNotFullCount) {
  EXPECT_EQ(Length(300, 0).batches, 20u);
  EXPECT_EQ(Length(300, 0).threads, 6u);
  EXPECT_EQ(Length(0, 0).batches, 0u) << "not known";
}

TEST(JobLengthTest, AnEpochMayEndBeforeAllIsTrained) {
  JobSettings settings = SmallJob();
  settings.batch_size = 10;
  settings.epoch_completion = 0.11;
  JobState state;
  state.row.epoch = 5;
  EXPECT_EQ(LengthOf(settings, state).batches, 55u);
}

TEST(JobLengthTest, TheWarmUpIsGivenInEpochsOrExamples) {
  EXPECT_EQ(Length(300, 4.5).warm_up, 18u);
  EXPECT_EQ(Length(300, 0, 1'500).warm_up, 6u);
  EXPECT_EQ(Length(300, 9).warm_up, 20u) << "it is longer than the job";
}

TEST(JobLengthTest, AJobIsShortWithFewBatchesForEachThreadBesideItsWarmUp) {
  EXPECT_TRUE(IsTooShort({.batches = 49}));
  EXPECT_FALSE(IsTooShort({.batches = 50}));
  EXPECT_TRUE(IsTooShort({.batches = 199, .threads = 4}));
  EXPECT_FALSE(IsTooShort({.batches = 200, .threads = 4}));
  EXPECT_TRUE(IsTooShort({.batches = 490, .warm_up = 441}));
  EXPECT_FALSE(IsTooShort({.batches = 500, .warm_up = 450}));
  EXPECT_FALSE(IsTooShort({})) << "not known";
}

TEST(JobLengthTest, WhereLittleWasLearnedInAShortJobItIsToldToTrainMore) {
  EpochResult row{.epoch = 5, .trained = 100'000, .training_loss = 2.2};
  const auto advice = [&](const Hindrances& hindrances) {
    return LearnedLittle(row, {.first_loss = 2.3}, 2.3, hindrances);
  };
  const JobLength whole_epochs{.batches = 5, .warm_up = 4, .batch_size = 20'000};
  EXPECT_THAT(
      advice({.length = whole_epochs}),
      testing::EndsWith(
          "2.3; the job has only 5 batches in all, 4 of them in its warm-up: try more "
          "epochs (spec.runPolicy.epochs), smaller batches (spec.data.batchSize), a shorter "
          "warm-up (spec.optimiser.schedule.warmUp)"));
  EXPECT_THAT(advice({.weight_decay = 0.5, .length = whole_epochs}),
              HasSubstr("try first a lower weight decay than 0.5"));
  EXPECT_THAT(advice({.uncorrected = true, .length = whole_epochs}),
              HasSubstr("try spec.optimiser.asynchrony: Auto (it is Off, with several workers), "
                        "more epochs"));
  EXPECT_THAT(advice({.length = {.batches = 1'000}}), Not(HasSubstr("batches")));
  row.training_loss = 2.3;
  EXPECT_THAT(advice({.length = {.batches = 1, .batch_size = 1, .threads = 4}}),
              testing::EndsWith("the loss has hardly moved; the job has only 1 batch in all for 4 "
                                "training threads: try more epochs (spec.runPolicy.epochs), fewer "
                                "workers, or else a higher spec.optimiser.rate"));
}

TEST(JobLengthTest, WhereTheLossHasRisenTheRateIsWhy) {
  EpochResult row{.epoch = 5, .trained = 100'000, .training_loss = 2.6};
  const auto advice = [&](double first) {
    return LearnedLittle(row, {.first_loss = first}, 2.3, {.length = {.batches = 5}});
  };
  EXPECT_THAT(advice(2.3), HasSubstr("; try a lower spec.optimiser.rate"));
  EXPECT_THAT(advice(9), HasSubstr("; try a lower spec.optimiser.rate")) << "it fell from more";
  row.training_loss = 2.3;
  EXPECT_THAT(advice(2.3), HasSubstr("only 5 batches"));
}

TEST(JobLengthTest, WhereTrainingDivergedTheRateIsWhy) {
  const EpochResult row{.epoch = 5, .trained = 100'000, .training_loss = 2.29};
  EXPECT_THAT(LearnedLittle(row, {.divergence = "NaN"}, 2.3, {.length = {.batches = 5}}),
              HasSubstr("; try a lower spec.optimiser.rate"));
}

}  // namespace
}  // namespace adamant::controller
