#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <string>

#include "operator/cli/commands/commands.h"
#include "operator/cli/commands/completion.h"
#include "operator/cli/commands/display.h"
#include "operator/cli/console/arguments.h"
#include "operator/cli/console/print_error.h"
#include "operator/cli/console/text.h"
#include "operator/cli/warnings/expectation.h"
#include "services/common/base/system/files.h"

namespace adamant::cli {
namespace {

using controller::EndKind;
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

TEST(TextTest, OfALongMessageEachPartHasALine) {
  const std::string cause(310, 'x');
  const std::string lines = cause + ";\n  try this;\n  or that";
  EXPECT_EQ(InLines("cause; try this"), "cause; try this");
  EXPECT_EQ(InLines(cause + "; try this; or that"), lines);
  testing::internal::CaptureStderr();
  PrintError(cause + "; try this; or that");
  PrintWarnings({cause + "; try this; or that"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "adamant: " + lines + "\nwarning: " + lines + "\n");
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
  result.training_loss = 0.25;
  result.evaluation_seconds = 0.04;
  EXPECT_THAT(EpochLine(result, 5), testing::EndsWith("250 examples/s  4.0s"));
  result.evaluation_seconds = 1.3;
  EXPECT_THAT(EpochLine(result, 5), testing::EndsWith("250 examples/s  4.0s + 1.3s evaluation"));
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
  EXPECT_TRUE(MayDoBetter(EndKind::kOther));
  EXPECT_TRUE(MayDoBetter(EndKind::kOutOfRestarts));
  EXPECT_TRUE(MayDoBetter(EndKind::kDiverged));
  EXPECT_FALSE(MayDoBetter(EndKind::kDidNotLearn));
  EXPECT_FALSE(MayDoBetter(EndKind::kAllLost));
}

TEST(LineTest, AJobThatStartsTellsHowManyBucketsAreReady) {
  controller::JobReport report;
  report.phase = controller::Phase::kStarting;
  EXPECT_EQ(StartingText(report), "");
  report.bucket_summary.states = {
      {"Creating", 3000}, {"FailingOver", 2000}, {"Degraded", 92}, {"Ready", 3100}};
  EXPECT_EQ(StartingText(report), "3192 of 8192 buckets ready");
  report.bucket_summary.states = {{"Ready", 64}};
  EXPECT_EQ(StartingText(report), "all buckets are ready, waiting for the data");
  report.members = {
      {.id = {controller::Role::kDataServer, 0}, .state = "Running"},
      {.id = {controller::Role::kWorker, 0}, .state = "Starting"},
      {.id = {controller::Role::kWorker, 1}, .state = "Restarting"},
  };
  EXPECT_EQ(StartingText(report), "all buckets are ready, waiting for worker-0 and 1 other");
  report.phase = controller::Phase::kRunning;
  EXPECT_EQ(StartingText(report), "");
}

TEST(WhatNextTest, WhatIsLostIsTrainedAnewByACommand) {
  controller::JobReport report;
  const std::string anew = "begin anew with: adamant train runs/a/job.yaml --run-dir NEW_FOLDER";
  report.end = EndKind::kAllLost;
  EXPECT_EQ(WhatNext(report, "runs/a"), anew);
  report.end = EndKind::kDidNotLearn;
  EXPECT_EQ(WhatNext(report, "runs/a"), "once the cause is put right, " + anew);
  report.end = EndKind::kLostLearned;
  EXPECT_EQ(WhatNext(report, "runs/a"), anew);
  report.end = EndKind::kOther;
  EXPECT_EQ(WhatNext(report, "runs/a"), HowToGoOn(report, "runs/a"));
}

class EndingTest : public testing::Test {
 protected:
  static std::string Failed(const std::string& message) { return Ended(message, EndKind::kOther); }

  static std::string Ended(const std::string& message,
                           EndKind end,
                           const std::vector<std::string>& warnings = {}) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const std::unique_ptr<Display> display = NewDisplay(Output::kText);
    display->OnOpening(
        {.job = "job", .run_folder = "run", .summary = "", .crowd = "32 processes share 2"});
    for (const std::string& warning : warnings) {
      display->OnNote({.kind = controller::Note::Kind::kWarning, .text = warning});
    }
    controller::JobReport report;
    report.phase = controller::Phase::kFailed;
    report.message = message;
    report.end = end;
    display->OnEnding({.report = report, .run_folder = "run", .exit_code = 1});
    testing::internal::GetCapturedStdout();
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(EndingTest, OfALongMessageEachPartHasALine) {
  EXPECT_THAT(Failed("cause; try this"), HasSubstr("failed: cause; try this\n"));
  const std::string cause(310, 'x');
  EXPECT_THAT(Failed(cause + "; try this; or that"),
              HasSubstr("failed: " + cause + ";\n  try this;\n  or that\n"));
}

TEST(ProgressTest, OnlyALongStartIsTold) {
  testing::internal::CaptureStdout();
  const std::unique_ptr<Display> display = NewDisplay(Output::kText);
  controller::JobReport report;
  report.phase = controller::Phase::kStarting;
  report.bucket_summary.states = {{"Creating", 2}};
  display->OnProgress(report);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(NotesTest, OfBucketsThatCameBackOneLineTells) {
  testing::internal::CaptureStdout();
  const std::unique_ptr<Display> display = NewDisplay(Output::kText);
  display->OnNote({.kind = controller::Note::Kind::kRestored,
                   .member = controller::SlotId{controller::Role::kParameterServer, 1},
                   .text = "bucket 0 restored"});
  display->OnNote(
      {.kind = controller::Note::Kind::kRestored, .epoch = 2, .text = "all buckets restored"});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "all buckets restored\n");
}

TEST_F(EndingTest, WhatWasWarnedOfIsToldAgainWhereTheModelIsPoor) {
  const std::vector<std::string> warnings = {"spec.optimiser.rate: 9 is high; as a rule"};
  const auto told =
      HasSubstr("it was warned of at the start, and may be why: spec.optimiser.rate: 9 is high\n");
  for (const EndKind end : {EndKind::kPoor,
                            EndKind::kWorse,
                            EndKind::kDidNotLearn,
                            EndKind::kLostLearned,
                            EndKind::kDiverged,
                            EndKind::kDivergedAgain}) {
    EXPECT_THAT(Ended("words do not matter", end, warnings), told);
  }
  EXPECT_THAT(Ended("training diverged", EndKind::kOther, warnings), testing::Not(told));
}

TEST_F(EndingTest, WhereTheRestartBudgetIsSpentTheCrowdIsTold) {
  EXPECT_THAT(Ended("worker-1 ended", EndKind::kOutOfRestarts),
              HasSubstr("\n32 processes share 2\n"));
  EXPECT_THAT(Failed("worker-1 was killed by signal 9"), testing::Not(HasSubstr("32 processes")));
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
  report.end = EndKind::kDiverged;
  EXPECT_EQ(HowToGoOn(report, run.string()),
            "write a lower spec.optimiser.rate into " + (run / "job.yaml").string() + ", then " +
                resume + " --accept-changes");
  report.end = EndKind::kDivergedAgain;
  EXPECT_EQ(HowToGoOn(report, run.string()),
            resume + " (at half the learning rate; or write a lower one into " +
                (run / "job.yaml").string() + " and add --accept-changes)");
  report.end = EndKind::kOther;
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

TEST(AddFolderTest, AnOptionIsNoFolder) {
  CLI::App app;
  std::string folder;
  std::string output;
  AddFolder(app, "--resume", folder, "");
  app.add_option("--output", output);
  try {
    app.parse("--resume --output json runs/a");
    FAIL() << folder;
  } catch (const CLI::ParseError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--resume: its folder is missing before --output"));
  }
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

TEST(SaveModelTest, TheFlagsOfTlsAreGivenAllOrNone) {
  for (const char* flag :
       {"--certificates a:1", "--tls-token t", "--trust-domain d", "--namespace n"}) {
    CLI::App app;
    int exit_code = 0;
    AddSaveModel(app, exit_code);
    EXPECT_THROW(app.parse(std::string("save-model --inputs x --out y ") + flag), CLI::ParseError)
        << flag;
  }
}

}  // namespace
}  // namespace adamant::cli
