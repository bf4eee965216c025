#include "operator/job_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/unit/operator/standing.h"

namespace adamant {
namespace {

using controller::Role;
using testing::AllOf;
using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

std::ptrdiff_t CountOf(JobMetric metric, const JobValues& values) {
  return std::ranges::count(values, metric, [](const auto& value) { return value.first.metric; });
}

class JobSeriesTest : public testing::Test {
 protected:
  [[nodiscard]] JobValues Values() const { return ValuesOf(standing_.told(), recoveries_); }
  [[nodiscard]] double ValueOf(const JobSeries& series) const {
    const JobValues values = Values();
    EXPECT_TRUE(values.contains(series));
    return values.contains(series) ? values.at(series) : -1;
  }
  [[nodiscard]] bool Has(JobMetric metric) const { return CountOf(metric, Values()) > 0; }

  Standing standing_;
  RecoveryTimes recoveries_;
};

TEST_F(JobSeriesTest, AJobHasFewSeriesHoweverLargeItIs) {
  auto* persistence = standing_.job.mutable_spec()
                          ->mutable_distribution()
                          ->mutable_parameter_servers()
                          ->mutable_persistence();
  persistence->set_mode(v1::Persistence::MODE_DELAYED);
  standing_.state.active = std::chrono::seconds(1);
  standing_.report.total_examples = 9;
  standing_.report.training_loss = 1;
  standing_.report.accuracy = 1;
  standing_.report.members.resize(1'000);
  standing_.report.buckets.resize(1'000);
  EXPECT_EQ(Values().size(), 54u);  // with those of certificates and outputs 58
}

TEST_F(JobSeriesTest, OnlyThePhaseIsThereThatTheJobIsIn) {
  EXPECT_EQ(ValueOf({JobMetric::kPhase, "Running"}), 1);
  standing_.status.set_phase(v1::TrainingJobStatus::PHASE_EVALUATING);
  EXPECT_EQ(ValueOf({JobMetric::kPhase, "Evaluating"}), 1);
  EXPECT_EQ(CountOf(JobMetric::kPhase, Values()), 1);
}

TEST_F(JobSeriesTest, WhatIsNotKnownIsNotThere) {
  for (const JobMetric metric : {JobMetric::kTrainingLoss,
                                 JobMetric::kAccuracy,
                                 JobMetric::kExamplesPerEpoch,
                                 JobMetric::kGoodput}) {
    EXPECT_FALSE(Has(metric));
  }
  EXPECT_EQ(ValueOf({JobMetric::kExamplesPerSecond}), 0);  // it stands
}

TEST_F(JobSeriesTest, ProgressIsThatOfTheReport) {
  standing_.report.epoch = 3;
  standing_.report.epochs = 10;
  standing_.report.counted_examples = 640;
  standing_.report.total_examples = 60'000;
  standing_.report.examples_per_second = 1'234.5;
  standing_.report.training_loss = 0.25;
  standing_.report.accuracy = 0.98;
  standing_.report.attempt = 2;
  EXPECT_THAT(Values(),
              AllOf(Contains(Pair(JobSeries{JobMetric::kEpoch}, 3)),
                    Contains(Pair(JobSeries{JobMetric::kEpochs}, 10)),
                    Contains(Pair(JobSeries{JobMetric::kEpochExamples}, 640)),
                    Contains(Pair(JobSeries{JobMetric::kExamplesPerEpoch}, 60'000)),
                    Contains(Pair(JobSeries{JobMetric::kExamplesPerSecond}, 1'234.5)),
                    Contains(Pair(JobSeries{JobMetric::kTrainingLoss}, 0.25)),
                    Contains(Pair(JobSeries{JobMetric::kAccuracy}, 0.98)),
                    Contains(Pair(JobSeries{JobMetric::kAttempt}, 2))));
}

TEST_F(JobSeriesTest, GoodputIsAShareOfTheActiveTime) {
  standing_.state.active = std::chrono::seconds(200);
  standing_.state.productive = std::chrono::seconds(150);
  EXPECT_DOUBLE_EQ(ValueOf({JobMetric::kGoodput}), 0.75);
}

TEST_F(JobSeriesTest, ProcessesAndTheirRestartsAreThoseOfTheStatus) {
  v1::RoleStatus& worker = *standing_.status.mutable_roles()->mutable_worker();
  worker.set_desired(4);
  worker.set_ready(3);
  worker.mutable_restart_causes()->set_out_of_memory(2);
  standing_.status.mutable_roles()->mutable_parameter_server()->set_desired(2);
  EXPECT_EQ(ValueOf({JobMetric::kProcesses, "worker", "wanted"}), 4);
  EXPECT_EQ(ValueOf({JobMetric::kProcesses, "worker", "joined"}), 3);
  EXPECT_EQ(ValueOf({JobMetric::kProcesses, "parameter-server", "wanted"}), 2);
  EXPECT_EQ(ValueOf({JobMetric::kRestarts, "worker", "OutOfMemory"}), 2);
  EXPECT_EQ(ValueOf({JobMetric::kRestarts, "data-server", "NodeLost"}), 0);
  EXPECT_EQ(CountOf(JobMetric::kRestarts, Values()), 18);
}

TEST_F(JobSeriesTest, TheBudgetIsNeverOverdrawn) {
  standing_.job.mutable_spec()->mutable_run_policy()->mutable_restart_budget()->set_limit(10);
  standing_.report.restarts = 4;
  EXPECT_EQ(ValueOf({JobMetric::kRestartsLeft}), 6);
  standing_.report.restarts = 12;  // the budget was lowered since
  EXPECT_EQ(ValueOf({JobMetric::kRestartsLeft}), 0);
}

TEST_F(JobSeriesTest, AllStatesOfBucketsAreThere) {
  standing_.report.bucket_summary.states = {{"Ready", 6}, {"Blocked", 2}};
  standing_.report.bucket_summary.rolled_back = 11;
  standing_.state.restores = 3;
  EXPECT_EQ(ValueOf({JobMetric::kBuckets, "Ready"}), 6);
  EXPECT_EQ(ValueOf({JobMetric::kBuckets, "Blocked"}), 2);
  EXPECT_EQ(ValueOf({JobMetric::kBuckets, "Restoring"}), 0);
  EXPECT_EQ(CountOf(JobMetric::kBuckets, Values()), 6);
  EXPECT_EQ(ValueOf({JobMetric::kRolledBackUpdates}), 11);
  EXPECT_EQ(ValueOf({JobMetric::kBucketRestores}), 3);
}

TEST_F(JobSeriesTest, OnlyInTheModeDelayedThereIsALossWindow) {
  auto* persistence = standing_.job.mutable_spec()
                          ->mutable_distribution()
                          ->mutable_parameter_servers()
                          ->mutable_persistence();
  persistence->set_mode(v1::Persistence::MODE_DELAYED);
  persistence->mutable_flush_interval()->set_nanos(500'000'000);
  EXPECT_DOUBLE_EQ(ValueOf({JobMetric::kLossWindow}), 0.5);
  for (const auto mode :
       {v1::Persistence::MODE_WAL, v1::Persistence::MODE_WAL_SYNC, v1::Persistence::MODE_NONE}) {
    persistence->set_mode(mode);
    EXPECT_FALSE(Has(JobMetric::kLossWindow));
  }
}

TEST_F(JobSeriesTest, RecoveriesAreCountedByPhase) {
  recoveries_.OnPhase({.kind = controller::FailoverPhase::Kind::kReconcile, .seconds = 0.5});
  EXPECT_EQ(ValueOf({JobMetric::kRecoveries, "reconcile"}), 1);
  EXPECT_EQ(ValueOf({JobMetric::kRecoverySeconds, "reconcile"}), 0.5);
  EXPECT_EQ(ValueOf({JobMetric::kRecoveries, "restart"}), 0);
  EXPECT_THAT(Values(), Not(Contains(Key(JobSeries{JobMetric::kRecoveries, ""}))));
}

}  // namespace
}  // namespace adamant
