#include "services/worker/rpc/progress_report.h"

#include <gtest/gtest.h>

#include <variant>

#include "tests/fakes/fake_clock.h"
#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

class ProgressReportTest : public testing::Test {
 protected:
  protocol::WorkerProgress Progress() {
    return std::get<protocol::WorkerProgress>(report_.Read().progress);
  }

  LoneLearner lone_{{.threads = 2}};
  FakeClock clock_;
  ProgressReport report_{lone_.learner, clock_};
};

TEST_F(ProgressReportTest, SumsTheThreadsAndSaysWhatWasPublished) {
  for (const std::size_t thread : {0, 1}) {
    ThreadStatistics& statistics = lone_.learner.channel(thread).statistics();
    statistics.examples = 8;
    statistics.correct = 3;
    statistics.loss_sum = 0.5;
  }
  lone_.learner.channel(1).statistics().epoch = 2;
  SynchroniserStatistics statistics;
  statistics.pushes_acknowledged = 5;
  statistics.updates_lost = 1;
  report_.Publish(statistics);
  const protocol::WorkerProgress progress = Progress();
  EXPECT_EQ(progress.trained_examples, 16u);
  EXPECT_EQ(progress.correct, 6u);
  EXPECT_EQ(progress.loss_sum, 1);
  EXPECT_EQ(progress.epoch, 2u);
  EXPECT_EQ(progress.pushes_acknowledged, 5u);
  EXPECT_EQ(progress.updates_lost, 1u);
  EXPECT_EQ(progress.grown_layer, "") << "no fetch has come";
}

TEST_F(ProgressReportTest, TheLayerThatHasGrownMostIsNamed) {
  SynchroniserStatistics statistics;
  statistics.weight_growth = 4;
  statistics.grown_tensor = 2;
  report_.Publish(statistics);
  EXPECT_EQ(Progress().weight_growth, 4);
  EXPECT_EQ(Progress().grown_layer, lone_.layout.parameters()[2].layer);
}

TEST_F(ProgressReportTest, TheLoopIsBusyForAsLongAsItsTurnLasts) {
  report_.OnTurn();
  report_.Read();
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(report_.Read().busy_seconds, 1);
  report_.OnTurn();
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(report_.Read().busy_seconds, 0);
}

}  // namespace
}  // namespace adamant::worker
