#include "operator/led_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "operator/kube/status/job_status.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/operator/standing.h"

namespace adamant {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

const JobSeries kRestart{JobMetric::kRecoveries, "restart"};

class LedJobsTest : public testing::Test {
 protected:
  JobValues Report() { return jobs_.OnReport(kMnist, standing_.told()); }
  JobValues ReportAfter(Clock::Duration time) {
    clock_.Advance(time);
    return Report();
  }
  void Tell(controller::Note::Kind kind) {
    jobs_.OnNote(kMnist, {.kind = kind, .member = controller::SlotId{}});
  }
  void SetPhase(v1::TrainingJobStatus::Phase phase) { standing_.status.set_phase(phase); }

  FakeClock clock_;
  LedJobs jobs_{clock_};
  Standing standing_;
};

TEST_F(LedJobsTest, AJobThatIsLedHasItsSeries) {
  EXPECT_THAT(Report(), Not(IsEmpty()));
  EXPECT_THAT(ReportAfter(seconds(600)), Not(IsEmpty()));
  EXPECT_THAT(jobs_.Expired(), IsEmpty());
}

TEST_F(LedJobsTest, ThoseOfAJobThatHasEndedStayForAMinute) {
  for (const auto phase : {v1::TrainingJobStatus::PHASE_SUCCEEDED,
                           v1::TrainingJobStatus::PHASE_FAILED,
                           v1::TrainingJobStatus::PHASE_SUSPENDED}) {
    ++standing_.state.job_uid;
    SetPhase(phase);
    EXPECT_TRUE(Report().contains({JobMetric::kPhase, kube::PhaseText(standing_.status)}));
    EXPECT_THAT(ReportAfter(seconds(59)), Not(IsEmpty()));
    EXPECT_THAT(jobs_.Expired(), IsEmpty());
    clock_.Advance(seconds(1));
    EXPECT_THAT(jobs_.Expired(), ElementsAre(kMnist));
    EXPECT_THAT(Report(), IsEmpty()) << "what is told of it later brings none back";
    EXPECT_THAT(ReportAfter(seconds(600)), IsEmpty());
  }
}

TEST_F(LedJobsTest, OneThatIsResumedHasThemAgain) {
  SetPhase(v1::TrainingJobStatus::PHASE_SUSPENDED);
  Report();
  EXPECT_THAT(ReportAfter(seconds(61)), IsEmpty());
  SetPhase(v1::TrainingJobStatus::PHASE_STARTING);
  EXPECT_THAT(Report(), Not(IsEmpty()));
  SetPhase(v1::TrainingJobStatus::PHASE_SUSPENDED);
  Report();
  EXPECT_THAT(ReportAfter(seconds(59)), Not(IsEmpty())) << "a minute of its own";
}

TEST_F(LedJobsTest, ThoseOfAJobThatIsGoneStayForAMinute) {
  Report();
  jobs_.OnGone(kMnist);
  clock_.Advance(seconds(59));
  EXPECT_THAT(jobs_.Expired(), IsEmpty());
  clock_.Advance(seconds(1));
  EXPECT_THAT(jobs_.Expired(), ElementsAre(kMnist));
  EXPECT_THAT(jobs_.Expired(), IsEmpty()) << "it is forgotten";
}

TEST_F(LedJobsTest, AJobThatHadEndedWhenItWentStaysNoLonger) {
  SetPhase(v1::TrainingJobStatus::PHASE_SUCCEEDED);
  Report();
  clock_.Advance(seconds(50));
  jobs_.OnGone(kMnist);
  clock_.Advance(seconds(10));
  EXPECT_THAT(jobs_.Expired(), ElementsAre(kMnist));
}

TEST_F(LedJobsTest, OneThatIsLedAgainIsNotGone) {
  Report();
  jobs_.OnGone(kMnist);
  EXPECT_THAT(ReportAfter(seconds(10)), Not(IsEmpty()));
  clock_.Advance(seconds(600));
  EXPECT_THAT(jobs_.Expired(), IsEmpty());
}

TEST_F(LedJobsTest, AJobThatNobodyHasSeenMayGo) {
  jobs_.OnGone(kMnist);
  clock_.Advance(seconds(600));
  EXPECT_THAT(jobs_.Expired(), IsEmpty());
}

TEST_F(LedJobsTest, RecoveriesAreThoseOfTheJob) {
  standing_.SetSlot({});
  Tell(controller::Note::Kind::kLost);  // while it is opened: before it is told of at all
  Report();
  clock_.Advance(seconds(3));
  Tell(controller::Note::Kind::kJoined);
  const JobValues values = Report();
  EXPECT_EQ(values.at(kRestart), 1);
  EXPECT_EQ(values.at({JobMetric::kRecoverySeconds, "restart"}), 3);
  jobs_.OnFailoverPhase(kMnist, {.kind = controller::FailoverPhase::Kind::kDetect, .seconds = 4});
  EXPECT_EQ(Report().at({JobMetric::kRecoverySeconds, "detect"}), 4);
}

TEST_F(LedJobsTest, AnotherJobOfThatNameBeginsAnew) {
  standing_.SetSlot({});
  Report();
  Tell(controller::Note::Kind::kLost);
  Tell(controller::Note::Kind::kJoined);
  EXPECT_EQ(Report().at(kRestart), 1);
  jobs_.OnGone(kMnist);
  ++standing_.state.job_uid;
  EXPECT_EQ(Report().at(kRestart), 0);
}

TEST_F(LedJobsTest, NobodyIsMissedOverAPause) {
  standing_.SetSlot({});
  Report();
  Tell(controller::Note::Kind::kLost);
  SetPhase(v1::TrainingJobStatus::PHASE_SUSPENDED);
  Report();
  SetPhase(v1::TrainingJobStatus::PHASE_STARTING);
  ReportAfter(seconds(3'600));
  Tell(controller::Note::Kind::kJoined);
  EXPECT_EQ(Report().at(kRestart), 0);
}

TEST_F(LedJobsTest, WhoLeadsNoMoreKnowsNothing) {
  standing_.SetSlot({});
  Report();
  Tell(controller::Note::Kind::kLost);
  Tell(controller::Note::Kind::kJoined);
  jobs_.Clear();
  clock_.Advance(seconds(600));
  EXPECT_THAT(jobs_.Expired(), IsEmpty());
  EXPECT_EQ(Report().at(kRestart), 0);
}

}  // namespace
}  // namespace adamant
