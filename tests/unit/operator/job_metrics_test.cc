#include "operator/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/fakes/fake_clock.h"
#include "tests/unit/operator/standing.h"

namespace adamant {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using Kind = controller::FailoverPhase::Kind;

constexpr char kJob[] = "{job=\"mnist\",namespace=\"ml\"";

class JobMetricsTest : public testing::Test {
 protected:
  void Report() { metrics_.OnReport(kMnist, standing_.told()); }
  v1::RestartCauses& WorkerCauses() {
    return *standing_.status.mutable_roles()->mutable_worker()->mutable_restart_causes();
  }
  static std::string Failed(int count) {
    return "adamant_job_restarts_total{cause=\"Failed\",job=\"mnist\",namespace=\"ml\",role="
           "\"worker\"} " +
           std::to_string(count) + "\n";
  }

  FakeClock clock_;
  metrics::Registry registry_;
  JobMetrics metrics_{registry_, clock_};
  Standing standing_;
};

TEST_F(JobMetricsTest, SeriesNameTheirJob) {
  standing_.report.epoch = 3;
  Report();
  const std::string text = registry_.Text();
  EXPECT_THAT(text, HasSubstr("adamant_job_epoch" + std::string(kJob) + "} 3"));
  EXPECT_THAT(text, HasSubstr("adamant_job_phase" + std::string(kJob) + ",phase=\"Running\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("adamant_job_processes" + std::string(kJob) +
                        ",role=\"worker\",state=\"wanted\"}"));
  EXPECT_THAT(text, HasSubstr(Failed(0)));
}

TEST_F(JobMetricsTest, EverySeriesHasAName) {
  standing_.state.active = seconds(1);
  standing_.report.total_examples = 1;
  standing_.report.training_loss = 1;
  standing_.report.accuracy = 1;
  Report();
  const std::string text = registry_.Text();
  std::size_t count = 0;
  for (std::size_t at = text.find("namespace=\"ml\""); at != std::string::npos;
       at = text.find("namespace=\"ml\"", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, ValuesOf(standing_.told(), RecoveryTimes()).size());
}

TEST_F(JobMetricsTest, APhaseThatIsLeftIsNotThere) {
  Report();
  standing_.status.set_phase(v1::TrainingJobStatus::PHASE_EVALUATING);
  Report();
  const std::string text = registry_.Text();
  EXPECT_THAT(text, HasSubstr("phase=\"Evaluating\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("phase=\"Running\"")));
}

TEST_F(JobMetricsTest, CountersBeginAtWhatTheStatusSays) {
  WorkerCauses().set_failed(5);
  Report();
  EXPECT_THAT(registry_.Text(), HasSubstr(Failed(5)));
  WorkerCauses().set_failed(7);
  Report();
  EXPECT_THAT(registry_.Text(), HasSubstr(Failed(7)));
}

TEST_F(JobMetricsTest, ATotalThatFallsBeginsAnew) {
  WorkerCauses().set_failed(5);
  Report();
  WorkerCauses().set_failed(1);  // of another job of that name
  ++standing_.state.job_uid;
  Report();
  EXPECT_THAT(registry_.Text(), HasSubstr(Failed(1)));
}

TEST_F(JobMetricsTest, ThoseOfAJobThatIsOverAreTakenOut) {
  Report();
  metrics_.OnGone(kMnist);
  clock_.Advance(seconds(59));
  metrics_.Expire();
  EXPECT_THAT(registry_.Text(), HasSubstr("adamant_job_epoch{"));
  clock_.Advance(seconds(1));
  metrics_.Expire();
  EXPECT_THAT(registry_.Text(), Not(HasSubstr("namespace=\"ml\"")));
  Report();
  EXPECT_THAT(registry_.Text(), HasSubstr("adamant_job_epoch{"));
}

TEST_F(JobMetricsTest, WhoCeasesToLeadServesNoJobAtOnce) {
  Report();
  metrics_.OnReport({"ml", "cifar"}, standing_.told());
  metrics_.OnAllGone();
  EXPECT_THAT(registry_.Text(), Not(HasSubstr("namespace=\"ml\"")));
  standing_.report.epoch = 9;
  Report();
  EXPECT_THAT(registry_.Text(), HasSubstr("adamant_job_epoch" + std::string(kJob) + "} 9"));
}

TEST_F(JobMetricsTest, ProcessesAreMeasuredFromTheirLossOn) {
  const controller::SlotId worker{controller::Role::kWorker, 1};
  standing_.SetSlot(worker);
  metrics_.OnAction(kMnist,
                    controller::Note{.kind = controller::Note::Kind::kLost, .member = worker});
  clock_.Advance(seconds(6));
  metrics_.OnAction(kMnist,
                    controller::Note{.kind = controller::Note::Kind::kJoined, .member = worker});
  Report();
  EXPECT_THAT(registry_.Text(),
              HasSubstr("adamant_job_recovery_seconds_total" + std::string(kJob) +
                        ",phase=\"restart\"} 6"));
}

// --- Of all jobs together

TEST_F(JobMetricsTest, RestartsAreCountedByRoleAndCause) {
  const controller::Note restart{.kind = controller::Note::Kind::kRestarting,
                                 .member = controller::SlotId{controller::Role::kWorker, 0},
                                 .reason = controller::LossReason::kOutOfMemory};
  metrics_.OnAction(kMnist, restart);
  metrics_.OnAction({"ml", "cifar"}, restart);
  const std::string text = registry_.Text();
  const std::string name = "adamant_operator_restarts_total";
  EXPECT_THAT(text, HasSubstr(name + "{cause=\"OutOfMemory\",role=\"worker\"} 2"));
  EXPECT_THAT(text, HasSubstr(name + "{cause=\"NodeLost\",role=\"data-server\"} 0"));
}

TEST_F(JobMetricsTest, PromotionsOfAllJobsAreCountedAndTheirPhasesMeasured) {
  metrics_.OnAction(kMnist, controller::Promoted{.buckets = 3});
  metrics_.OnAction({"ml", "cifar"}, controller::Promoted{.buckets = 1});
  metrics_.OnAction(kMnist, controller::FailoverPhase{.kind = Kind::kDetect, .seconds = 4});
  metrics_.OnAction(kMnist, controller::FailoverPhase{.kind = Kind::kReplace, .seconds = 0.25});
  metrics_.OnAction(kMnist, controller::FailoverPhase{.kind = Kind::kReplace, .seconds = 0.5});
  metrics_.OnAction({"ml", "cifar"},
                    controller::FailoverPhase{.kind = Kind::kCatchUp, .seconds = 7});
  metrics_.OnAction(kMnist, controller::Finished{});
  Report();
  const std::string text = registry_.Text();
  const std::string sum = "adamant_controller_failover_seconds_sum{phase=";
  EXPECT_THAT(text, HasSubstr("adamant_controller_failovers_total 4"));
  EXPECT_THAT(text, HasSubstr(sum + "\"detect\"} 4"));
  EXPECT_THAT(text, HasSubstr(sum + "\"replace\"} 0.75"));
  EXPECT_THAT(text, HasSubstr(sum + "\"reconcile\"} 0"));
  EXPECT_THAT(text, HasSubstr(sum + "\"catch_up\"} 7"));
  EXPECT_THAT(
      text,
      HasSubstr("adamant_job_recoveries_total" + std::string(kJob) + ",phase=\"replace\"} 2"));
  EXPECT_THAT(
      text,
      HasSubstr("adamant_job_recoveries_total" + std::string(kJob) + ",phase=\"catch_up\"} 0"));
}

}  // namespace
}  // namespace adamant
