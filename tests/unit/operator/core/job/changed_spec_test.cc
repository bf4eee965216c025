#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "tests/unit/operator/core/job/harness.h"

// What else than the number of workers may change while a job runs: scale_test.cc, end_test.cc.
namespace adamant::controller {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

class ChangedSpecTest : public testing::Test {
 protected:
  ChangedSpecTest() {
    settings_.epochs = 3;
    job_ = std::make_unique<Harness>(settings_);
    job_->Begin();
    job_->JoinAll();
  }

  /// The number of epochs that a worker's schedule goes over, which starts now.
  std::uint64_t ScheduleOfANewWorker() {
    job_->Exit(kWorker1);
    job_->Pass(seconds(20), {kWorker1});
    const auto welcome = Sent<Welcome>(job_->Join(kWorker1, "new" + std::to_string(++uids_)));
    return welcome.empty() ? 0 : welcome.front().second.schedule_epochs;
  }

  void Export() {
    job_->Handle(Exported{.snapshot = job_->state().evaluated_snapshot, .status = {}});
  }

  void Succeed() {
    for (int epoch = 1; epoch <= 3; ++epoch) {
      job_->TrainAndEvaluate(50);
    }
    Export();
    ASSERT_EQ(job_->state().phase, Phase::kSucceeded);
  }

  JobSettings settings_ = SmallJob();
  std::unique_ptr<Harness> job_;
  int uids_ = 0;
};

TEST_F(ChangedSpecTest, AJobThatGetsMoreEpochsTrainsThem) {
  settings_.epochs = 4;
  job_->Change(settings_);
  EXPECT_EQ(job_->controller().Report().epochs, 4u);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    EXPECT_THAT(Pick<controller::Export>(job_->TrainAndEvaluate(50)), IsEmpty()) << epoch;
  }
  EXPECT_THAT(Pick<controller::Export>(job_->TrainAndEvaluate(50)), SizeIs(1));
}

TEST_F(ChangedSpecTest, AJobThatGetsFewerEpochsThanItHasBegunEndsWithTheOneThatIsOpen) {
  job_->TrainAndEvaluate(50);
  ASSERT_EQ(job_->state().epoch, 2u);
  settings_.epochs = 1;
  job_->Change(settings_);
  EXPECT_EQ(job_->state().phase, Phase::kRunning);
  EXPECT_EQ(job_->controller().Report().epochs, 2u) << "as many as it will have";
  EXPECT_THAT(Pick<controller::Export>(job_->TrainAndEvaluate(50)), SizeIs(1));
  EXPECT_THAT(job_->results(), SizeIs(2));
}

// Data servers that were started before go on to the epochs that they know of.
TEST_F(ChangedSpecTest, AnEpochBeyondTheLastThatBeganWithoutAControllerIsTheLast) {
  settings_.epochs = 1;
  job_->Change(settings_);
  job_->Tell(kData0, Heartbeat{.progress = DataServerProgress{.decided_epoch = 2}});
  EXPECT_EQ(job_->state().epoch, 2u);
  EXPECT_THAT(Pick<controller::Export>(job_->TrainAndEvaluate(50)), SizeIs(1));
}

TEST_F(ChangedSpecTest, ATargetThatIsChangedCounts) {
  settings_.target_accuracy = 0.6;
  job_->Change(settings_);
  EXPECT_THAT(Pick<controller::Export>(job_->TrainAndEvaluate(59)), IsEmpty());
  settings_.target_accuracy.reset();
  job_->Change(settings_);
  EXPECT_THAT(Pick<controller::Export>(job_->TrainAndEvaluate(60)), IsEmpty());
  settings_.target_accuracy = 0.3;
  job_->Change(settings_);
  EXPECT_THAT(Pick<controller::Export>(job_->TrainAndEvaluate(40)), SizeIs(1));
}

TEST_F(ChangedSpecTest, ATargetThatIsNotReachedIsToldAtTheEnd) {
  settings_.target_accuracy = 0.99;
  settings_.epochs = 1;
  job_->Change(settings_);
  const std::string missed =
      "spec.runPolicy.targetAccuracy, 0.99, was not reached: top-1 is 0.5 after 1 epoch";
  EXPECT_THAT(Pick<Note>(job_->TrainAndEvaluate(50)),
              testing::Contains(testing::Field(&Note::text, missed)));
  Export();
  EXPECT_EQ(job_->state().phase, Phase::kSucceeded);
  EXPECT_EQ(job_->state().message, missed);
}

TEST_F(ChangedSpecTest, ATargetThatEndsTheJobEarlyIsTheReasonAndNoAlarm) {
  settings_.target_accuracy = 0.5;
  settings_.epochs = 20;
  job_->Change(settings_);
  for (const Note& note : Pick<Note>(job_->TrainAndEvaluate(50))) {
    EXPECT_NE(note.kind, Note::Kind::kAlarm) << note.text;
  }
  Export();
  EXPECT_EQ(job_->state().phase, Phase::kSucceeded);
  EXPECT_EQ(job_->state().message,
            "spec.runPolicy.targetAccuracy, 0.5, was reached before all 20 epochs were trained: "
            "top-1 is 0.5 after 1 epoch");
}

TEST_F(ChangedSpecTest, ATargetThatIsReachedInTheLastEpochIsNotTold) {
  settings_.target_accuracy = 0.5;
  settings_.epochs = 1;
  job_->Change(settings_);
  job_->TrainAndEvaluate(50);
  Export();
  EXPECT_EQ(job_->state().phase, Phase::kSucceeded);
  EXPECT_EQ(job_->state().message, "");
}

TEST_F(ChangedSpecTest, AJobThatHasSucceededTrainsOnFromItsCheckpointWhenItHasMoreEpochs) {
  Succeed();
  const std::uint64_t checkpoint = job_->state().checkpoint.snapshot;
  EXPECT_TRUE(job_->controller().IsOver());
  settings_.epochs = 4;
  job_->Change(settings_);
  job_->RestartController({.others = false});
  EXPECT_FALSE(job_->controller().IsOver());
  EXPECT_EQ(job_->state().phase, Phase::kStarting);
  job_->Handle(Tick{});
  const auto opened = Sent<OpenEpoch>(job_->JoinAll("-again"));
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 4u);
  EXPECT_EQ(job_->state().buckets[0].restored_snapshot, checkpoint);
  EXPECT_EQ(job_->state().recovery.attempt, 1u);
  EXPECT_THAT(Pick<controller::Export>(job_->TrainAndEvaluate(50)), SizeIs(1));
  EXPECT_THAT(job_->results(), SizeIs(4));
}

TEST_F(ChangedSpecTest, AJobThatHasSucceededStaysSoWithAsManyEpochsAndWhereNothingResumes) {
  Succeed();
  EXPECT_THAT(Pick<Finished>(job_->RestartController({.others = false})), SizeIs(1));
  settings_.epochs = 4;
  job_->Change(settings_);
  job_->RestartController({.others = false, .resumes = false});
  EXPECT_EQ(job_->state().phase, Phase::kSucceeded);
}

TEST_F(ChangedSpecTest, AJobThatWasStoppedAsItsModelWasWrittenTrainsOnToo) {
  for (int epoch = 1; epoch <= 3; ++epoch) {
    job_->TrainAndEvaluate(50);
  }
  ASSERT_EQ(job_->state().step, Step::kExporting);
  job_->Handle(SuspendRequested{.reason = "for a test"});
  settings_.epochs = 4;
  job_->Change(settings_);
  job_->RestartController({.others = false});
  const auto opened = Sent<OpenEpoch>(job_->JoinAll("-again"));
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 4u);
}

TEST_F(ChangedSpecTest, CheckpointsComeAsOftenAsIsWantedNow) {
  EXPECT_THAT(Sent<PausePushes>(job_->Pass(seconds(60))), IsEmpty());
  settings_.checkpoint_interval = seconds(5);
  job_->Change(settings_);
  EXPECT_THAT(Sent<PausePushes>(job_->Pass(seconds(20))), testing::Not(IsEmpty()));
}

TEST_F(ChangedSpecTest, AFailureRuleThatIsChangedCounts) {
  settings_.failure_rules = {{.cause = LossCause::kExit, .action = LossAction::kFail}};
  job_->Change(settings_);
  job_->Exit(kWorker1);
  EXPECT_EQ(job_->state().phase, Phase::kFailed);
}

TEST_F(ChangedSpecTest, AScheduleKeepsTheEpochsThatTheJobWasStartedWithUntilItIsResumed) {
  settings_.epochs = 6;
  job_->Change(settings_);
  EXPECT_EQ(ScheduleOfANewWorker(), 3u);
  job_->RestartController({.running = job_->controller().Wanted()});
  EXPECT_EQ(job_->state().schedule_epochs, 3u);
  job_->Handle(SuspendRequested{.reason = "it is wanted"});
  job_->Pass(seconds(5));
  job_->RestartController({.others = false});
  EXPECT_EQ(job_->state().schedule_epochs, 6u);
}

TEST_F(ChangedSpecTest, AScheduleOfFewerEpochsThanHaveBegunEndsWithTheOpenOne) {
  job_->TrainAndEvaluate(50);
  ASSERT_EQ(job_->state().epoch, 2u);
  job_->Handle(SuspendRequested{.reason = "it is wanted"});
  job_->Pass(seconds(5));
  settings_.epochs = 1;
  job_->Change(settings_);
  job_->RestartController({.others = false});
  EXPECT_EQ(job_->state().schedule_epochs, 2u);
}

}  // namespace
}  // namespace adamant::controller
