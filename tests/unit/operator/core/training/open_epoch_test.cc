#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "tests/unit/operator/core/job/harness.h"

// What an epoch has counted, when its controller ends before it does.
namespace adamant::controller {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class OpenEpochTest : public testing::Test {
 protected:
  OpenEpochTest() {
    job_.Begin();
    job_.JoinAll();
  }

  // The worker's totals.
  Harness::Actions Train(std::uint64_t examples, double loss_sum, std::uint64_t lost) {
    WorkerProgress progress{.trained_examples = examples, .loss_sum = loss_sum};
    progress.updates_lost = lost;
    return job_.Tell(kWorker0, Heartbeat{.progress = std::move(progress)});
  }

  [[nodiscard]] std::uint64_t lost() const { return job_.controller().Report().updates_lost; }

  Harness job_;
};

TEST_F(OpenEpochTest, WhatWasCountedBeforeAStopIsInItsRow) {
  Train(80, 40, 230);
  job_.Handle(SuspendRequested{.reason = "Ctrl-C"});
  job_.Pass(std::chrono::minutes(1));
  ASSERT_EQ(job_.state().phase, Phase::kSuspended);
  EXPECT_EQ(lost(), 230u);
  job_.RestartController({.others = false});
  EXPECT_EQ(lost(), 230u);
  job_.JoinAll("-resumed");
  Train(20, 10, 1);
  job_.TrainAndEvaluate(50);
  ASSERT_THAT(job_.results(), SizeIs(1));
  EXPECT_EQ(job_.results()[0].updates_lost, 231u);
  EXPECT_EQ(job_.results()[0].trained, 100u);
  EXPECT_DOUBLE_EQ(job_.results()[0].training_loss, 0.5);
  EXPECT_EQ(lost(), 231u);
}

TEST_F(OpenEpochTest, ALossIsStoredAtOnceAndCountedOnceByTheNextController) {
  EXPECT_THAT(Pick<Persist>(Train(80, 40, 230)), SizeIs(1));
  EXPECT_THAT(Pick<Persist>(Train(90, 45, 230)), IsEmpty());
  const std::vector<StartProcess> running = job_.controller().Wanted();
  job_.RestartController({.running = running});
  EXPECT_EQ(lost(), 230u);
  job_.Join(kWorker0, ToString(kWorker0), 1);
  Train(95, 47, 232);
  EXPECT_EQ(lost(), 232u);
}

TEST_F(OpenEpochTest, ProcessesThatHaveNotBegunAreWaitedFor) {
  JobSettings settings = SmallJob();
  settings.training_examples = 0;  // the data servers are to tell
  Harness job(settings);
  job.Begin();
  for (const JobReport::MemberReport& member : job.controller().Report().members) {
    EXPECT_EQ(member.state, member.id.role == Role::kDataServer ? "Starting" : "Waiting");
  }
}

}  // namespace
}  // namespace adamant::controller
