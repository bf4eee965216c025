#include "operator/cli/warnings/expectation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ExpectationText Expected(const std::string& distribution,
                         const std::string& optimiser,
                         const std::string& batch_size = "32",
                         const std::string& epochs = "10",
                         const std::string& layers = "") {
  const job::ParseResult parsed = job::ParseJob(R"(
apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: tiny}
spec:
  model:
    network:
      input: [1, 28, 28]
      classes: 10
      layers: [)" + layers + R"({name: fc1, kind: FullyConnected, outputs: 10}]
  data:
    batchSize: )" + batch_size + R"(
    train: {digits: {seed: 1, examples: 60000}}
    validation: {digits: {seed: 2, examples: 500}}
  runPolicy: {epochs: )" + epochs + R"(}
  optimiser: )" + optimiser + "\n  distribution: " + distribution +
                                                    "\n",
                                                "job.yaml");
  for (const job::Diagnostic& problem : parsed.problems) {
    ADD_FAILURE() << job::Format(problem);
  }
  return parsed.job == nullptr ? ExpectationText{} : ExpectationOf(*parsed.job);
}

constexpr char kMomentum[] = "{kind: Momentum, rate: 0.02, schedule: {kind: Linear}}";

TEST(ExpectationTest, OneThreadNeedsNoWords) {
  const ExpectationText text = Expected("{workers: 1}", kMomentum);
  EXPECT_EQ(text.lines, "");
  EXPECT_THAT(text.warnings, IsEmpty());
}

TEST(ExpectationTest, HardlyAnyRoomForWhatAWorkerKeepsIsWarnedOf) {
  const auto with = [](const std::string& persistence) {
    return Expected("{workers: 1, parameterServers: {count: 3, persistence: " + persistence + "}}",
                    kMomentum)
        .warnings;
  };
  EXPECT_THAT(
      with("{retain: 1}"),
      ElementsAre("spec.distribution.parameterServers.persistence.retain: 1 bytes have room "
                  "for 0 of the pushes, of 31400 bytes each, that a worker keeps until they "
                  "are on disk: workers wait for the disk, and train slower. "
                  "1Mi are enough; with 0 they keep nothing and do not wait"));
  EXPECT_THAT(with("{mode: Wal, retain: 64Ki}"),
              ElementsAre(HasSubstr("room for 2 of the pushes")));
  for (const char* enough : {"{retain: 0}", "{retain: 1Mi}", "{mode: None}", "{}"}) {
    EXPECT_THAT(with(enough), IsEmpty()) << enough;
  }
}

std::vector<std::string> WarningsOfOptimiser(const std::string& optimiser,
                                             const std::string& epochs = "10") {
  return Expected("{workers: 1}", optimiser, "32", epochs).warnings;
}

TEST(ExpectationTest, ARateAboveAllThatTrainsIsWarnedOf) {
  EXPECT_THAT(WarningsOfOptimiser("{kind: Momentum, rate: 50}"),
              ElementsAre("spec.optimiser.rate: rate / (1 - momentum) is 500; no net was measured "
                          "to train well above 0.8 with such batches: as a rule training swings or "
                          "diverges, or ends lower (docs/bench/scaling.md)"));
  EXPECT_THAT(WarningsOfOptimiser("{kind: Sgd, rate: 0.81}"),
              ElementsAre(HasSubstr("spec.optimiser.rate: 0.81; no net was measured")));
  EXPECT_THAT(WarningsOfOptimiser("{kind: Adagrad, rate: 0.1}"),
              ElementsAre(HasSubstr("train well above 0.08")));
  EXPECT_THAT(
      WarningsOfOptimiser("{kind: Momentum, rate: 0.02, layers: [{layer: fc1, rate: 5}]}"),
      ElementsAre(HasSubstr("spec.optimiser.layers[0].rate: rate / (1 - momentum) is 50;")));
  for (const char* fine : {"{kind: Momentum, rate: 0.08}",
                           "{kind: Momentum, rate: 0.8, momentum: 0}",
                           "{kind: Sgd, rate: 0.8}",
                           "{kind: Adagrad, rate: 0.08}"}) {
    EXPECT_THAT(WarningsOfOptimiser(fine), IsEmpty()) << fine;
  }
}

TEST(ExpectationTest, LargerBatchesBearAHigherRateAndSmallerOnesALowerOne) {
  const std::string rate = "{kind: Momentum, rate: 0.2}";
  EXPECT_THAT(Expected("{workers: 1}", rate, "256", "10").warnings, IsEmpty());
  EXPECT_THAT(Expected("{workers: 1}", rate, "128", "10").warnings,
              ElementsAre(HasSubstr("is 2; no net was measured to train well above 1.6")));
  const std::string recipe = "{kind: Momentum, rate: 0.02}";
  EXPECT_THAT(Expected("{workers: 1}", recipe, "8", "1").warnings, IsEmpty());
  EXPECT_THAT(Expected("{workers: 1}", recipe, "4", "1").warnings,
              Contains(HasSubstr("to train well above 0.1 with such batches")));
  EXPECT_THAT(Expected("{workers: 1}", "{kind: Momentum, rate: 0.0025}", "1", "1").warnings,
              IsEmpty());
}

TEST(ExpectationTest, ARateThatHardlyMovesTheWeightsInTheJobIsWarnedOf) {
  EXPECT_THAT(
      WarningsOfOptimiser("{kind: Momentum, rate: 1e-7}"),
      ElementsAre("spec.optimiser.rate: with 1e-07 the weights hardly move in the job's 18750 "
                  "batches, and little is learned; nets were measured to learn from about 2.7e-05 "
                  "on (docs/bench/scaling.md)"));
  EXPECT_THAT(WarningsOfOptimiser("{kind: Momentum, rate: 3e-5}"), IsEmpty());
  EXPECT_THAT(WarningsOfOptimiser("{kind: Momentum, rate: 3e-5}", "5"),
              ElementsAre(HasSubstr("hardly move in the job's 9375 batches")));
  EXPECT_THAT(Expected("{workers: 1}", "{kind: Momentum, rate: 4e-4}", "3200", "1").warnings,
              Not(Contains(HasSubstr("hardly move"))))
      << "19 batches are few";
  EXPECT_THAT(WarningsOfOptimiser("{kind: Sgd, rate: 2e-4}"), ElementsAre(HasSubstr("0.00027")));
  EXPECT_THAT(WarningsOfOptimiser("{kind: Adagrad, rate: 7e-4}"),
              ElementsAre(HasSubstr("from about 0.00073 on")));
  EXPECT_THAT(WarningsOfOptimiser("{kind: Adagrad, rate: 1e-3}"), IsEmpty());
  EXPECT_THAT(
      WarningsOfOptimiser("{kind: Momentum, rate: 0.02, layers: [{layer: fc1, rate: 1e-9}]}"),
      IsEmpty())
      << "a layer may nearly stand still";
}

TEST(ExpectationTest, AnEpochThatMayEndEarlyHasFewerBatches) {
  const auto with = [](const std::string& completion) {
    return Expected("{workers: 2}", kMomentum, "32", "10, epochCompletion: " + completion).warnings;
  };
  EXPECT_THAT(with("0.5"), IsEmpty());
  EXPECT_THAT(
      with("0.1"),
      ElementsAre(HasSubstr("workers: the job has only 1880 batches in all for 2 training threads"),
                  "spec.runPolicy.epochCompletion: with 0.1 each epoch may end when most of its "
                  "examples are not trained; it is meant to leave out the last few, which slow "
                  "workers hold"));
}

TEST(ExpectationTest, AScheduleThatLeavesNothingOfTheRateForLongIsWarnedOf) {
  const auto with = [](const std::string& schedule) {
    return Expected("{workers: 1}", "{kind: Momentum, rate: 0.02, schedule: " + schedule + "}")
        .warnings;
  };
  EXPECT_THAT(
      with("{kind: Linear, over: {epochs: 2.5}}"),
      ElementsAre("spec.optimiser.schedule: after 2.5 of 10 epochs the learning rate is "
                  "next to 0 for the rest "
                  "of the job, which learns nothing then: raise over or final, or train fewer "
                  "epochs"));
  EXPECT_THAT(with("{kind: Linear, over: {epochs: 0.5}, warmUp: {epochs: 1}}"),
              ElementsAre(HasSubstr("after 0.5 of 10 epochs")));
  EXPECT_THAT(
      with("{kind: Step, decay: 1.0e-09, every: {examples: 60000}}"),
      ElementsAre(AllOf(HasSubstr("after 1 of 10 epochs"), HasSubstr("raise decay or every"))));
  EXPECT_THAT(with("{kind: Linear, over: {examples: 1}}"),
              ElementsAre(HasSubstr("after 0.01 of 10 epochs")));
  for (const char* schedule : {"{kind: Linear}",
                               "{kind: Cosine}",
                               "{kind: Linear, over: {epochs: 2.5}, final: 0.01}",
                               "{kind: Step, decay: 0.1, every: {epochs: 5}}",
                               "{kind: Linear, over: {epochs: 9.5}}",
                               "{kind: Constant, warmUp: {epochs: 9}}"}) {
    EXPECT_THAT(with(schedule), IsEmpty()) << schedule;
  }
}

TEST(ExpectationTest, SixteenWorkers) {
  const ExpectationText text = Expected("{workers: 16}", kMomentum);
  EXPECT_EQ(text.lines,
            "workers: 16 x 1 thread, batches of 32: 512 examples at a time\n"
            "staleness: about 30 batches of others on average, on processors of their own; an "
            "exchange after every batch\n"
            "start: one worker alone for 200 batches at learning rate 0.02; then a gain of 1/16: "
            "learning rate 0.00027, momentum 0.9483\n"
            "correction: staleness factor 0.42, once the gain is 1: learning rate 0.02 -> 0.0043, "
            "momentum 0.9 -> 0.9483 (optimiser.asynchrony: Auto)\n");
  EXPECT_THAT(text.warnings, IsEmpty());
}

TEST(ExpectationTest, TwoWorkersGoAsFarAsOneAndRememberLittle) {
  EXPECT_EQ(Expected("{workers: 2}", kMomentum).lines,
            "workers: 2 x 1 thread, batches of 32: 64 examples at a time\n"
            "staleness: about 9 batches of others on average, on processors of their own; an "
            "exchange after every 8 batches\n"
            "start: a gain of 1/2: learning rate 0.025, momentum 0.5\n"
            "correction: staleness factor 0.5, once the gain is 1: learning rate 0.02 -> 0.05, "
            "momentum 0.9 -> 0.5 (optimiser.asynchrony: Auto)\n");
}

TEST(ExpectationTest, InAShortJobTwoWorkersMeetAfterEveryBatchAndOneBegins) {
  const ExpectationText two = Expected("{workers: 2}", kMomentum, "32", "1");
  EXPECT_THAT(two.speed, HasSubstr("slower than one worker alone (workers: 1)"));
  EXPECT_EQ(Expected("{workers: 2}", kMomentum).speed, "");
  EXPECT_THAT(two.lines,
              AllOf(HasSubstr("an exchange after every batch\nspeed: in a job this short"),
                    HasSubstr("start: one worker alone for 200 batches at learning rate 0.02; then "
                              "a gain of 1/2: learning rate 0.025, momentum 0.5\n")));
  EXPECT_THAT(Expected("{workers: 1, threadsPerWorker: 2}", kMomentum, "32", "1").lines,
              AllOf(HasSubstr("an exchange after every 8 batches\n"), Not(HasSubstr("alone"))));
}

TEST(ExpectationTest, ThreadsOfOneWorkerAreNotOthers) {
  EXPECT_EQ(
      Expected("{workers: 1, threadsPerWorker: 4}", kMomentum).lines,
      "workers: 1 x 4 threads, batches of 32: 128 examples at a time\n"
      "staleness: no batches of other workers; an exchange after every 8 batches\n"
      "correction: none once faded in, unless the weights swing (optimiser.asynchrony: Auto)\n");
}

TEST(ExpectationTest, WithoutMomentumOnlyTheRateIsCorrected) {
  const ExpectationText text = Expected("{workers: 16}", "{kind: Sgd, rate: 0.1}");
  EXPECT_THAT(text.lines,
              HasSubstr("staleness factor 0.42, once the gain is 1: learning rate 0.1 -> 0.042 "
                        "(optimiser.asynchrony"));
  EXPECT_THAT(text.warnings, ElementsAre(HasSubstr("spec.optimiser: without momentum")));
}

TEST(ExpectationTest, WarnsOfMoreThreadsThanWereMeasured) {
  EXPECT_THAT(Expected("{workers: 4, threadsPerWorker: 4}", kMomentum).warnings, IsEmpty());
  EXPECT_THAT(Expected("{workers: 17}", kMomentum).warnings,
              ElementsAre(HasSubstr(
                  "distribution.workers: 17 threads in all; more than 16 were never measured")));
  EXPECT_THAT(Expected("{workers: 1, threadsPerWorker: 32}", kMomentum).warnings,
              ElementsAre(HasSubstr("spec.distribution.threadsPerWorker: 32 threads in all")));
  EXPECT_THAT(Expected("{workers: 4, threadsPerWorker: 5}", kMomentum).warnings,
              ElementsAre(HasSubstr("spec.distribution.threadsPerWorker: 20 threads in all")));
}

TEST(ExpectationTest, SharingAmongOneThreadIsWarnedOf) {
  EXPECT_THAT(Expected("{workers: 1, threadsPerWorker: 1, shareEvery: 8}", kMomentum).warnings,
              ElementsAre(HasSubstr("spec.distribution.shareEvery: 8 has no effect")));
  EXPECT_THAT(Expected("{workers: 1, threadsPerWorker: 2, shareEvery: 8}", kMomentum).warnings,
              IsEmpty());
  EXPECT_THAT(Expected("{workers: 1, threadsPerWorker: 1, shareEvery: 1}", kMomentum).warnings,
              IsEmpty());
}

TEST(ExpectationTest, AWarmStartIsOf200BatchesAndMayBeWritten) {
  EXPECT_THAT(Expected("{workers: 3}", kMomentum, "320", "20").lines,
              HasSubstr("start: one worker alone for 200 batches at learning rate 0.02; then"));
  EXPECT_THAT(Expected("{workers: 2, warmStart: {examples: 64}}", kMomentum).lines,
              HasSubstr("start: one worker alone for 2 batches at learning rate 0.02; then"));
  EXPECT_THAT(Expected("{workers: 2, warmStart: {examples: 1}}", kMomentum).lines,
              HasSubstr("start: one worker alone for 1 batch at learning rate 0.02; then"));
  EXPECT_THAT(Expected("{workers: 3, warmStart: {examples: 0}}", kMomentum).lines,
              HasSubstr("\nstart: a gain of 1/3: learning rate 0.00"));
}

TEST(ExpectationTest, OfAJobThatIsAllWarmStartTheOtherWorkersOnlyWait) {
  const ExpectationText of_188 = Expected("{workers: 8}", kMomentum, "320", "1");
  EXPECT_EQ(of_188.lines,
            "workers: 8 x 1 thread, batches of 320: 2560 examples at a time\n"
            "start: one worker trains all 188 batches alone\n")
      << "nothing of what the others would do";
  EXPECT_THAT(
      of_188.warnings,
      ElementsAre(HasSubstr("spec.distribution.workers: the job has only 188 batches in all "
                            "for 8 training threads, no more than one worker trains alone "
                            "before the others begin; these only wait, and with one worker "
                            "it is the same: try more epochs (spec.runPolicy.epochs), "
                            "smaller batches (spec.data.batchSize), fewer workers")));
  EXPECT_THAT(
      Expected("{workers: 8}", kMomentum, "320", "2").warnings,
      ElementsAre(HasSubstr("has only 376 batches in all for 8 training threads, which fade in")));
}

TEST(ExpectationTest, WithoutCorrectionAllBeginAtOnce) {
  const std::string off = "{kind: Momentum, rate: 0.02, asynchrony: Off}";
  EXPECT_THAT(Expected("{workers: 3}", off).lines, Not(HasSubstr("start:")));
  EXPECT_THAT(Expected("{workers: 3, warmStart: {examples: 64}}", off).lines,
              HasSubstr("start: one worker alone for 2 batches at learning rate 0.02; then all\n"));
}

ExpectationText ExpectedOfConvolutions(const std::string& distribution,
                                       const std::string& optimiser,
                                       const std::string& epochs = "10") {
  return Expected(distribution,
                  optimiser,
                  "320",
                  epochs,
                  "{name: conv1, kind: Conv2d, channels: 2, kernel: [5, 5]}, ");
}

TEST(ExpectationTest, WarnsOfJobsThatAreTooShortToFadeIn) {
  EXPECT_THAT(
      ExpectedOfConvolutions("{workers: 8}", kMomentum, "3").warnings,
      ElementsAre(HasSubstr("spec.distribution.workers: the job has only 564 batches in all "
                            "for 8 training threads, which fade in; below about 1600 it")));
  EXPECT_THAT(ExpectedOfConvolutions("{workers: 8}", kMomentum, "9").warnings, IsEmpty());
  EXPECT_THAT(
      ExpectedOfConvolutions("{workers: 2}", kMomentum, "8").warnings,
      ElementsAre(HasSubstr("1504 batches in all for 2 training threads, which fade in; below "
                            "about 1600")));
  EXPECT_THAT(ExpectedOfConvolutions("{workers: 16}", kMomentum, "17").warnings,
              ElementsAre(HasSubstr("below about 3200")));
  EXPECT_THAT(ExpectedOfConvolutions("{workers: 1, threadsPerWorker: 8}", kMomentum, "3").warnings,
              IsEmpty());
}

TEST(ExpectationTest, ANetWithoutConvolutionsNeedsLongerJobs) {
  for (const auto& [workers, few, enough, fewest] :
       {std::tuple{"{workers: 2}", "29", "30", "5600"},  // epochs of 188 batches
        {"{workers: 4}", "29", "30", "5600"},
        {"{workers: 8}", "34", "35", "6400"}}) {
    EXPECT_THAT(Expected(workers, kMomentum, "320", few).warnings,
                ElementsAre(HasSubstr(std::string("below about ") + fewest)))
        << workers;
    EXPECT_THAT(Expected(workers, kMomentum, "320", enough).warnings, IsEmpty()) << workers;
  }
}

TEST(ExpectationTest, WithoutMomentumSeveralWorkersEndLower) {
  const std::string sgd = "{kind: Sgd, rate: 0.02}";
  EXPECT_THAT(Expected("{workers: 1}", sgd).warnings, IsEmpty());
  EXPECT_THAT(Expected("{workers: 2}", sgd).warnings,
              ElementsAre(HasSubstr("without momentum, several workers of a net without")));
  EXPECT_THAT(ExpectedOfConvolutions("{workers: 4}", sgd).warnings, IsEmpty());
  EXPECT_THAT(ExpectedOfConvolutions("{workers: 5}", sgd).warnings,
              ElementsAre(HasSubstr("without momentum, many workers end lower")));
}

TEST(ExpectationTest, BatchesOfOneAreNotToBeSmaller) {
  EXPECT_THAT(
      Expected("{workers: 200}", kMomentum, "2", "1").warnings,
      Contains(HasSubstr(
          "(spec.runPolicy.epochs), smaller batches (spec.data.batchSize), fewer workers")));
  EXPECT_THAT(Expected("{workers: 400}", kMomentum, "1", "1").warnings,
              Contains(HasSubstr(
                  "than with one worker: try more epochs (spec.runPolicy.epochs), fewer workers")));
}

TEST(ExpectationTest, WarnsOfManyThreadsThatBeginAtOnce) {
  EXPECT_THAT(Expected("{workers: 3, warmStart: {examples: 0}}", kMomentum).warnings,
              ElementsAre(HasSubstr("spec.distribution.warmStart.examples: 0 lets 3 threads")));
  EXPECT_THAT(Expected("{workers: 3, warmStart: {examples: 32}}", kMomentum).warnings, IsEmpty());
  EXPECT_THAT(Expected("{workers: 3}", kMomentum).warnings, IsEmpty());
  EXPECT_THAT(Expected("{workers: 2, warmStart: {examples: 0}}", kMomentum).warnings, IsEmpty());
  EXPECT_THAT(
      Expected("{workers: 1, threadsPerWorker: 4, warmStart: {examples: 0}}", kMomentum).warnings,
      IsEmpty());
}

TEST(ExpectationTest, AMomentumNearOneHasTheDigitsThatSayHowNear) {
  const std::string lines =
      Expected("{workers: 16}", "{kind: Momentum, rate: 0.02, momentum: 0.9999}").lines;
  EXPECT_THAT(lines, HasSubstr("momentum 0.9999 -> 0.9999"));
  EXPECT_THAT(lines, Not(HasSubstr("-> 1 ")));
}

TEST(ExpectationTest, WarnsOfIntervalsThatAreLongerThanAnEpoch) {
  EXPECT_THAT(Expected("{workers: 2, fetchEvery: 937, pushEvery: 937}", kMomentum).warnings,
              IsEmpty());
  EXPECT_THAT(
      Expected("{workers: 2, fetchEvery: 938, pushEvery: 937}", kMomentum).warnings,
      ElementsAre(HasSubstr("spec.distribution.fetchEvery: 938 is more than the 937 batches")));
  const ExpectationText alone = Expected("{workers: 1, pushEvery: 2000}", kMomentum);
  EXPECT_EQ(alone.lines, "");
  EXPECT_THAT(alone.warnings, ElementsAre(HasSubstr("pushEvery: 2000 is more than the 1875")));
}

TEST(ExpectationTest, WarnsOfNumbersThatAreTakenAsTheyAre) {
  const std::string off = "{kind: Momentum, rate: 0.02, asynchrony: Off}";
  EXPECT_THAT(Expected("{workers: 2}", off).warnings, IsEmpty());
  const ExpectationText text = Expected("{workers: 3}", off);
  EXPECT_THAT(text.lines, HasSubstr("correction: none (optimiser.asynchrony: Off)\n"));
  EXPECT_THAT(text.warnings, ElementsAre(HasSubstr("spec.optimiser.asynchrony: Off")));
}

TEST(ExpectationTest, WarnsOfWrittenIntervals) {
  EXPECT_THAT(Expected("{workers: 2, fetchEvery: 8, pushEvery: 8}", kMomentum).warnings, IsEmpty());
  EXPECT_THAT(
      Expected("{workers: 2, fetchEvery: 8, pushEvery: 8}", kMomentum, "32", "1").warnings,
      AllOf(Contains(HasSubstr("fetchEvery: 8 is kept as written, and two workers learn so short")),
            Contains(HasSubstr("spec.distribution.pushEvery: 8 is kept as written"))));
  EXPECT_THAT(Expected("{workers: 3, fetchEvery: 1, pushEvery: 1}", kMomentum).warnings, IsEmpty());
  const ExpectationText text = Expected("{workers: 3, fetchEvery: 4, pushEvery: 8}", kMomentum);
  EXPECT_THAT(text.lines, HasSubstr("a fetch after every 4 batches, a push after every 8 batches"));
  EXPECT_THAT(text.warnings,
              ElementsAre(HasSubstr("spec.distribution.fetchEvery: 4 is kept"),
                          HasSubstr("spec.distribution.pushEvery: 8 is kept")));
}

TEST(ExpectationTest, MomentumOnTheServersIsSteppedOften) {
  const std::string server = "{kind: Momentum, rate: 0.02, location: Server}";
  EXPECT_THAT(Expected("{workers: 2}", server).lines,
              HasSubstr("an exchange after every 2 batches"));
  EXPECT_THAT(Expected("{workers: 2}", "{kind: Sgd, rate: 0.02, location: Server}").lines,
              HasSubstr("an exchange after every 8 batches"));
}

TEST(ExpectationTest, WarnsOfMomentumOnTheServers) {
  const std::string server = "{kind: Momentum, rate: 0.002, location: Server}";
  EXPECT_THAT(Expected("{workers: 1}", server).warnings, IsEmpty());
  EXPECT_THAT(Expected("{workers: 2}", server).warnings,
              ElementsAre(HasSubstr("spec.optimiser.location: with momentum on the servers")));
}

TEST(ExpectationTest, WarnsOfALongMemory) {
  const std::string momentum = "{kind: Momentum, rate: 0.02, momentum: 0.99}";
  const auto swings = ElementsAre(HasSubstr("spec.optimiser.momentum: with 0.99 training swings"));
  EXPECT_THAT(Expected("{workers: 1}", momentum).warnings, swings);
  EXPECT_THAT(Expected("{workers: 1}", "{kind: Momentum, rate: 0.002, momentum: 0.99}").warnings,
              IsEmpty());
  EXPECT_THAT(Expected("{workers: 3}", momentum).warnings, swings);
  EXPECT_THAT(Expected("{workers: 2, threadsPerWorker: 2}", momentum).warnings, swings);
  EXPECT_THAT(Expected("{workers: 2}", momentum).warnings, swings);
  EXPECT_THAT(
      Expected("{workers: 2}", "{kind: Momentum, rate: 0.02, momentum: 0.99, asynchrony: Off}")
          .warnings,
      swings);
  EXPECT_THAT(Expected("{workers: 2}", "{kind: Momentum, rate: 0.02, momentum: 0.95}").warnings,
              IsEmpty());
}

}  // namespace
}  // namespace adamant::cli
