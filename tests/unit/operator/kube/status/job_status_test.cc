#include "operator/kube/status/job_status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "tests/unit/operator/kube/job/job_fixture.h"

namespace adamant::kube {
namespace {

using controller::JobReport;
using controller::Phase;
using controller::Role;
using Status = v1::TrainingJobStatus;

constexpr char kBefore[] = "2026-11-20T10:00:00Z";
constexpr char kNow[] = "2026-11-20T11:00:00Z";

JobView View(Status status = {}) {
  return {.key = kJob.key,
          .uid = kJob.uid,
          .resource_version = "12",
          .generation = 3,
          .job = ReadTestJob(),
          .problems = "",
          .status = std::make_shared<Status>(std::move(status)),
          .checkpoint_request = ""};
}

JobReport Report(Phase phase) {
  JobReport report;
  report.phase = phase;
  report.epoch = 2;
  report.epochs = 5;
  return report;
}

Status Shown(const JobReport& report, const JobView& view, const char* now) {
  return StatusOf(report, {}, view, now);
}

const v1::Condition& ConditionOf(const Status& status, const std::string& type) {
  for (const v1::Condition& condition : status.conditions()) {
    if (condition.type() == type) {
      return condition;
    }
  }
  ADD_FAILURE() << "no condition " << type;
  return v1::Condition::default_instance();
}

bool Holds(const Status& status, const std::string& type) {
  return ConditionOf(status, type).status() == v1::Condition::STATUS_TRUE;
}

TEST(JobStatusTest, EveryPhaseHasItsConditions) {
  struct Case {
    Phase phase;
    Status::Phase shown;
    std::string holds;  // besides Valid
  };
  const std::vector<Case> cases = {{Phase::kPending, Status::PHASE_PENDING, ""},
                                   {Phase::kStarting, Status::PHASE_STARTING, ""},
                                   {Phase::kRunning, Status::PHASE_RUNNING, "Running"},
                                   {Phase::kEvaluating, Status::PHASE_EVALUATING, "Running"},
                                   {Phase::kSucceeded, Status::PHASE_SUCCEEDED, "Succeeded"},
                                   {Phase::kFailed, Status::PHASE_FAILED, "Failed"},
                                   {Phase::kSuspended, Status::PHASE_SUSPENDED, "Suspended"}};
  for (const Case& expected : cases) {
    const Status status = Shown(Report(expected.phase), View(), kNow);
    EXPECT_EQ(status.phase(), expected.shown);
    EXPECT_EQ(status.observed_generation(), 3);
    EXPECT_TRUE(Holds(status, "Valid"));
    for (const char* type : {"Running", "Succeeded", "Failed", "Suspended"}) {
      EXPECT_EQ(Holds(status, type), expected.holds == type) << type << " in " << expected.shown;
      EXPECT_EQ(ConditionOf(status, type).observed_generation(), 3);
    }
  }
}

TEST(JobStatusTest, AConditionKeepsTheTimeOfItsTransition) {
  const Status first = Shown(Report(Phase::kRunning), View(), kBefore);
  EXPECT_EQ(ConditionOf(first, "Running").last_transition_time(), kBefore);
  const Status same = Shown(Report(Phase::kRunning), View(first), kNow);
  EXPECT_EQ(ConditionOf(same, "Running").last_transition_time(), kBefore);
  const Status other = Shown(Report(Phase::kFailed), View(first), kNow);
  EXPECT_EQ(ConditionOf(other, "Running").last_transition_time(), kNow);
  EXPECT_EQ(ConditionOf(other, "Failed").last_transition_time(), kNow);
  EXPECT_EQ(ConditionOf(other, "Succeeded").last_transition_time(), kBefore);
}

TEST(JobStatusTest, StartAndCompletionAreToldOnce) {
  const Status running = Shown(Report(Phase::kRunning), View(), kBefore);
  EXPECT_EQ(running.start_time(), kBefore);
  EXPECT_FALSE(running.has_completion_time());
  const Status ended = Shown(Report(Phase::kSucceeded), View(running), kNow);
  EXPECT_EQ(ended.start_time(), kBefore);
  EXPECT_EQ(ended.completion_time(), kNow);
  const Status later = Shown(Report(Phase::kSucceeded), View(ended), "2026-11-20T12:00:00Z");
  EXPECT_EQ(later.completion_time(), kNow);
  // A job that was resumed has not ended any more.
  EXPECT_FALSE(Shown(Report(Phase::kRunning), View(ended), kNow).has_completion_time());
}

TEST(JobStatusTest, AFailureSaysWhy) {
  JobReport report = Report(Phase::kFailed);
  report.message = "worker-1 was killed by signal 9";
  const Status status = Shown(report, View(), kNow);
  EXPECT_EQ(status.message(), report.message);
  EXPECT_EQ(ConditionOf(status, "Failed").message(), report.message);
  EXPECT_EQ(ConditionOf(status, "Suspended").message(), "");
  EXPECT_EQ(ConditionOf(status, "Failed").reason(), "Failed");
  report.over_deadline = "spec.runPolicy.activeDeadline";
  EXPECT_EQ(ConditionOf(Shown(report, View(), kNow), "Failed").reason(), "DeadlineExceeded");
}

TEST(JobStatusTest, NumbersAreThoseOfTheReport) {
  JobReport report = Report(Phase::kRunning);
  report.counted_examples = 700;
  report.total_examples = 1000;
  report.examples_per_second = 99.6;
  report.accuracy = 0.5;
  report.training_loss = 0.25;
  report.restarts = 2;
  report.checkpoint = 9;
  const Status status = Shown(report, View(), kNow);
  EXPECT_EQ(status.epoch(), 2);
  EXPECT_EQ(status.epochs(), 5);
  EXPECT_EQ(status.examples(), 700);
  EXPECT_EQ(status.examples_per_epoch(), 1000);
  EXPECT_EQ(status.examples_per_second(), 100);
  EXPECT_EQ(status.accuracy(), 0.5);
  EXPECT_EQ(status.training_loss(), 0.25);
  EXPECT_EQ(status.restarts(), 2);
  EXPECT_EQ(status.checkpoint().snapshot(), 9);
  EXPECT_EQ(status.output_claim(), "mnist-output");
  EXPECT_EQ(ConditionOf(status, "Running").message(), "epoch 2 of 5");
}

TEST(JobStatusTest, AJobThatHasNotDivergedHasNoSuchCondition) {
  const Status status = Shown(Report(Phase::kRunning), View(), kNow);
  for (const v1::Condition& condition : status.conditions()) {
    EXPECT_NE(condition.type(), "Diverged");
  }
  EXPECT_EQ(status.attempt(), 1);
  EXPECT_EQ(status.rate_factor(), 1);
  EXPECT_FALSE(status.has_divergence());
}

TEST(JobStatusTest, DivergenceIsAConditionThatStays) {
  JobReport report = Report(Phase::kRunning);
  report.divergence = "all 60 units of layer relu1 are dead";
  const Status first = Shown(report, View(), kBefore);
  EXPECT_TRUE(Holds(first, "Diverged"));
  EXPECT_EQ(ConditionOf(first, "Diverged").reason(), "Diverged");
  EXPECT_EQ(ConditionOf(first, "Diverged").message(), report.divergence);
  EXPECT_EQ(first.divergence(), report.divergence);
  report.attempt = 2;
  report.rate_factor = 0.5;
  const Status second = Shown(report, View(first), kNow);
  EXPECT_EQ(ConditionOf(second, "Diverged").reason(), "WentBack");
  EXPECT_EQ(ConditionOf(second, "Diverged").last_transition_time(), kBefore);
  EXPECT_EQ(second.attempt(), 2);
  EXPECT_EQ(second.rate_factor(), 0.5);
  EXPECT_TRUE(Holds(Shown(Report(Phase::kRunning), View(second), kNow), "Diverged"));
  EXPECT_TRUE(Holds(SuspendedStatus(View(second), kNow), "Diverged"));
  EXPECT_TRUE(Holds(LostStatus(View(second), "somebody has deleted it", kNow), "Diverged"));
}

TEST(JobStatusTest, AJobThatIsToContinueHasOnlyDiverged) {
  JobReport report = Report(Phase::kRunning);
  report.divergence = "the validation loss is not finite";
  report.attempt = 2;
  JobView view = View();
  auto job = std::make_shared<v1::TrainingJob>(*view.job);
  job->mutable_spec()->mutable_run_policy()->mutable_on_divergence()->set_action(
      v1::OnDivergence::ACTION_CONTINUE);
  view.job = std::move(job);
  EXPECT_EQ(ConditionOf(Shown(report, view, kNow), "Diverged").reason(), "Diverged");
}

TEST(JobStatusTest, WhatIsNotKnownYetIsAbsent) {
  const Status status = Shown(Report(Phase::kStarting), View(), kNow);
  EXPECT_FALSE(status.has_message());
  EXPECT_FALSE(status.has_accuracy());
  EXPECT_FALSE(status.has_examples_per_epoch());
  EXPECT_FALSE(status.has_checkpoint());
}

TEST(JobStatusTest, RolesCountTheirMembersAndPods) {
  using State = ObservedPod::State;
  JobReport report = Report(Phase::kRunning);
  PodViews pods;
  const auto add = [&](controller::SlotId id, const char* member, State state) {
    JobReport::MemberReport& reported = report.members.emplace_back();
    reported.id = id;
    reported.state = member;
    PodView pod;
    pod.pod = {.process = {id, 1}, .state = state};
    pods.push_back(std::make_shared<PodView>(std::move(pod)));
  };
  add({Role::kWorker, 0}, "Running", State::kRunning);
  add({Role::kWorker, 1}, "Starting", State::kPending);
  add({Role::kWorker, 2}, "Restarting", State::kEnded);
  add({Role::kDataServer, 0}, "Running", State::kRunning);
  PodView exporter;
  exporter.output = OutputWork{.snapshot = 7};
  pods.push_back(std::make_shared<PodView>(exporter));
  const Status status = StatusOf(report, pods, View(), kNow);
  EXPECT_EQ(status.roles().worker().desired(), 3);
  EXPECT_EQ(status.roles().worker().pods(), 2);
  EXPECT_EQ(status.roles().worker().ready(), 1);
  EXPECT_EQ(status.roles().data_server().ready(), 1);
  add({Role::kWorker, 3}, "Leaving", State::kRunning);
  const Status shrinking = StatusOf(report, pods, View(), kNow);
  EXPECT_EQ(shrinking.roles().worker().desired(), 3);
  EXPECT_EQ(shrinking.roles().worker().pods(), 3);
  EXPECT_EQ(status.roles().parameter_server().desired(), 0);
  EXPECT_EQ(status.roles().worker().selector(),
            "adamant.dev/job-uid=" + kJob.uid + ",adamant.dev/role=worker");
  report.phase = Phase::kSucceeded;
  EXPECT_EQ(StatusOf(report, pods, View(), kNow).roles().worker().ready(), 0);
}

TEST(JobStatusTest, WhatCannotBeDoneIsToldBeforeWhatTheJobWaitsFor) {
  const std::vector<FailedWrites::Failure> quota = {
      {.what = "create pod worker-0", .why = "quota"}};
  JobReport report = Report(Phase::kStarting);
  report.message = "data-server-0: reads its data, 30 %";
  Status status = Shown(report, View(), kNow);
  AddFailures(quota, View(), kNow, status);
  EXPECT_EQ(status.message(),
            "cannot create pod worker-0: quota; data-server-0: reads its data, 30 %");
  Status waiting = WaitingStatus(View(status), kNow);
  AddFailures(quota, View(status), kNow, waiting);
  EXPECT_EQ(waiting.message(), "cannot create pod worker-0: quota") << "said once";
  for (const Phase phase : {Phase::kFailed, Phase::kSuspended}) {
    report = Report(phase);
    report.message = "why it does not go on";
    status = Shown(report, View(), kNow);
    AddFailures(quota, View(), kNow, status);
    EXPECT_EQ(status.message(), "why it does not go on");
    EXPECT_TRUE(Holds(status, "WriteFailure"));
  }
}

TEST(JobStatusTest, ASuspendedJobKeepsWhatItHadReached) {
  JobReport report = Report(Phase::kRunning);
  report.accuracy = 0.5;
  const Status status = SuspendedStatus(View(Shown(report, View(), kBefore)), kNow);
  EXPECT_EQ(status.phase(), Status::PHASE_SUSPENDED);
  EXPECT_EQ(status.accuracy(), 0.5);
  EXPECT_EQ(status.start_time(), kBefore);
  EXPECT_TRUE(Holds(status, "Suspended"));
  EXPECT_EQ(ConditionOf(status, "Suspended").last_transition_time(), kNow);
  EXPECT_EQ(ConditionOf(status, "Valid").last_transition_time(), kBefore);
}

TEST(JobStatusTest, ItSaysWhetherTheJobIsSecured) {
  Status status = Shown(Report(Phase::kRunning), View(), kBefore);
  const auto conditions = status.conditions_size();
  SetSecured(true, View(), kBefore, status);
  EXPECT_EQ(status.conditions_size(), conditions) << "nobody has decided yet";
  status.mutable_security()->set_mode(v1::SecurityStatus::MODE_PLAIN);
  SetSecured(false, View(), kBefore, status);
  EXPECT_FALSE(Holds(status, "Secured"));
  EXPECT_EQ(ConditionOf(status, "Secured").reason(), "TLSDisabled");
  const std::string off = ConditionOf(status, "Secured").message();

  const JobView view = View(status);
  SetSecured(true, view, kNow, status);
  EXPECT_EQ(status.conditions_size(), conditions + 1);
  EXPECT_NE(ConditionOf(status, "Secured").message(), off);
  EXPECT_EQ(ConditionOf(status, "Secured").last_transition_time(), kBefore);

  status.mutable_security()->set_mode(v1::SecurityStatus::MODE_T_L_S);
  SetSecured(true, View(), kNow, status);
  EXPECT_TRUE(Holds(status, "Secured"));
  EXPECT_EQ(ConditionOf(status, "Secured").reason(), "TLS");
}

TEST(JobStatusTest, AnInvalidJobSaysWhatIsWrong) {
  JobView view = View();
  view.job = nullptr;
  view.problems = "spec.distribution.workers: must be at least 1";
  const Status status = InvalidStatus(view, kNow);
  EXPECT_EQ(status.phase(), Status::PHASE_FAILED);
  EXPECT_EQ(status.observed_generation(), 3);
  EXPECT_EQ(status.message(), "the spec is not valid: " + view.problems);
  EXPECT_FALSE(Holds(status, "Valid"));
  EXPECT_EQ(ConditionOf(status, "Valid").reason(), "InvalidSpec");
  EXPECT_EQ(ConditionOf(status, "Valid").message(), view.problems);
}

TEST(JobStatusTest, EveryPhaseHasANameForPeople) {
  EXPECT_EQ(PhaseText(Status()), "New");
  for (const auto& [phase, text] : {std::pair(Status::PHASE_PENDING, "Pending"),
                                    std::pair(Status::PHASE_STARTING, "Starting"),
                                    std::pair(Status::PHASE_RUNNING, "Running"),
                                    std::pair(Status::PHASE_EVALUATING, "Evaluating"),
                                    std::pair(Status::PHASE_SUCCEEDED, "Succeeded"),
                                    std::pair(Status::PHASE_FAILED, "Failed"),
                                    std::pair(Status::PHASE_SUSPENDED, "Suspended")}) {
    Status status;
    status.set_phase(phase);
    EXPECT_EQ(PhaseText(status), text);
  }
}

}  // namespace
}  // namespace adamant::kube
