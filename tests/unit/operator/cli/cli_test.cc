#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <string>

#include "operator/cli/commands.h"
#include "operator/cli/completion.h"
#include "operator/cli/console/text.h"
#include "operator/cli/display.h"
#include "operator/core/chance.h"
#include "services/common/base/files.h"

namespace adamant::cli {
namespace {

using testing::HasSubstr;

TEST(FormatSecondsTest, IsShortAtEverySize) {
  EXPECT_EQ(FormatSeconds(0.44), "0.4s");
  EXPECT_EQ(FormatSeconds(45), "45s");
  EXPECT_EQ(FormatSeconds(80), "1m20s");
  EXPECT_EQ(FormatSeconds(7380), "2h03m");
  EXPECT_EQ(FormatSeconds(-1), "0.0s");
}

TEST(FormatLatencyTest, HasMillisecondsBelowASecond) {
  EXPECT_EQ(FormatLatency(0), "0ms");
  EXPECT_EQ(FormatLatency(0.0514), "51ms");
  EXPECT_EQ(FormatLatency(0.9996), "1.0s");
  EXPECT_EQ(FormatLatency(80), "1m20s");
}

TEST(TextTest, IsCutRatherThanOverrun) {
  EXPECT_EQ(Text("%s", std::string(1000, 'x').c_str()), std::string(511, 'x'));
}

TEST(SecondsLeftTest, CountsThisEpochThoseToComeAndTheirEvaluations) {
  controller::JobReport report;
  EXPECT_LT(SecondsLeft(report, 1, 1), 0);
  report.epoch = 2;
  report.epochs = 4;
  report.counted_examples = 500;
  report.total_examples = 1000;
  report.examples_per_second = 100;
  EXPECT_DOUBLE_EQ(SecondsLeft(report, 1, 1), 25 + 3);
  EXPECT_DOUBLE_EQ(SecondsLeft(report, 1, 0.75), 17.5 + 3) << "epochs that end with 750 of them";
}

TEST(LineTest, WhatIsNotKnownIsLeftOut) {
  controller::EpochResult result;
  result.epoch = 2;
  result.counted = 1000;
  result.seconds = 4;
  result.validated = 500;
  result.top1 = 0.9712;
  EXPECT_EQ(EpochLine(result, 5), "epoch 2/5  top-1 97.12%  4.0s");
  result.trained = 1000;
  result.training_loss = 0.25;
  EXPECT_EQ(EpochLine(result, 5), "epoch 2/5  loss 0.2500  top-1 97.12%  250 examples/s  4.0s");
  result.training_loss = std::nan("");
  EXPECT_EQ(EpochLine(result, 5), "epoch 2/5  top-1 97.12%  250 examples/s  4.0s");
  controller::JobReport report;
  report.epoch = 2;
  report.epochs = 5;
  EXPECT_EQ(ProgressLine(report), "epoch 2/5: 0 examples/s");
  report.total_examples = 1000;
  EXPECT_EQ(ProgressLine(report), "epoch 2/5: 0 of 1000 examples, 0 examples/s");
  report.training_loss = 0.25;
  EXPECT_EQ(ProgressLine(report), "epoch 2/5: 0 of 1000 examples, loss 0.2500, 0 examples/s");
}

TEST(MayDoBetterTest, AJobThatWouldFailAgainIsNotResumed) {
  EXPECT_TRUE(MayDoBetter(""));
  EXPECT_TRUE(MayDoBetter("worker-1 was killed by signal 9"));
  EXPECT_FALSE(MayDoBetter(controller::ChanceFailure({}, {}, 0)));
  EXPECT_TRUE(MayDoBetter("training diverged in epoch 3: the loss, at rate 0.1; try a lower one"));
}

TEST(HowToGoOnTest, ADeadlineThatIsOverIsToBeRaisedFirst) {
  const std::filesystem::path run =
      std::filesystem::temp_directory_path() / ("adamant_cli_" + std::to_string(getpid()));
  EXPECT_THAT(HowToGoOn({}, run.string()), HasSubstr("is not there any more"));
  std::filesystem::create_directories(run);
  for (const char* file : {"job.yaml", "started.yaml"}) {
    ASSERT_TRUE(WriteFile(run / file, "").ok());
  }
  const std::string resume = "go on with: adamant train --resume " + run.string();
  controller::JobReport report;
  report.message = "worker-1 was killed by signal 9";
  EXPECT_EQ(HowToGoOn(report, run.string()), resume);
  report.message = "training diverged in epoch 3: the loss, at rate 0.1";
  EXPECT_EQ(HowToGoOn(report, run.string()),
            "write a lower spec.optimiser.rate into " + (run / "job.yaml").string() + ", then " +
                resume + " --accept-changes");
  report.message = "training diverged in epoch 3: NaN; the job had gone back 3 times";
  EXPECT_EQ(HowToGoOn(report, run.string()),
            resume + " (at half the learning rate; or write a lower one into " +
                (run / "job.yaml").string() + " and add --accept-changes)");
  report.message = "its words do not matter: it ran longer than spec.runPolicy.activeDeadline";
  EXPECT_EQ(HowToGoOn(report, run.string()), resume);
  report.over_deadline = "spec.runPolicy.epochDeadline";
  EXPECT_EQ(HowToGoOn(report, run.string()),
            "raise spec.runPolicy.epochDeadline in " + run.string() +
                "/job.yaml first, or delete it; then " + resume);
  report.over_deadline = "";
  report.message =
      "parameter-server-0 cannot store snapshot 3: disk full: cannot write f: No space left on "
      "device";
  EXPECT_EQ(HowToGoOn(report, run.string()), "make room on that disk, then " + resume);
  report.message = "cannot write the model: cannot write f: File too large";
  EXPECT_EQ(HowToGoOn(report, run.string()),
            "raise the limit of file sizes (ulimit -f), then " + resume);
  std::filesystem::remove_all(run);
}

class CompletionTest : public testing::Test {
 protected:
  CompletionTest() {
    AddTrain(app_, exit_code_);
    AddData(app_, exit_code_);
    AddCompletion(app_, exit_code_);
  }

  int exit_code_ = 0;
  CLI::App app_{"A program.", "adamant"};
};

TEST_F(CompletionTest, EveryShellOffersCommandsAndTheirOptions) {
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish}) {
    const std::string script = CompletionScript(app_, shell);
    EXPECT_THAT(script, HasSubstr("train"));
    EXPECT_THAT(script, HasSubstr("resume"));
    EXPECT_THAT(script, HasSubstr("mnist"));
    EXPECT_THAT(script, HasSubstr("mirror"));
  }
}

TEST_F(CompletionTest, EveryShellOffersTheWordsThatAnOptionTakes) {
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish}) {
    EXPECT_THAT(CompletionScript(app_, shell), HasSubstr("text json"));
  }
}

TEST_F(CompletionTest, NoShellOffersWhatIsNotForPeople) {
  AddSaveModel(app_, exit_code_);
  AddServeOutput(app_, exit_code_);
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish}) {
    EXPECT_THAT(CompletionScript(app_, shell), testing::Not(HasSubstr("save-model")));
    EXPECT_THAT(CompletionScript(app_, shell), testing::Not(HasSubstr("serve-output")));
  }
}

TEST_F(CompletionTest, BashKnowsOptionsOfNestedCommands) {
  const std::string script = CompletionScript(app_, Shell::kBash);
  EXPECT_THAT(script, HasSubstr("'data digits/-'*) offered='--help --out"));
  EXPECT_THAT(script, HasSubstr("'data/digits') at='data digits'"));
}

}  // namespace
}  // namespace adamant::cli
