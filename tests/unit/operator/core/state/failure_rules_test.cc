#include "operator/core/state/failure_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

ProcessLoss Exited(int code, bool bad_configuration = false) {
  return {.how = "exited with code " + std::to_string(code),
          .cause = LossCause::kExit,
          .exit_code = code,
          .bad_configuration = bad_configuration};
}

TEST(JudgeTest, WithoutARuleOnlyAnExitCosts) {
  const auto action = [](const ProcessLoss& loss) { return Judge({}, Role::kWorker, loss).action; };
  EXPECT_EQ(action(Exited(1)), LossAction::kRestart);
  EXPECT_EQ(action({.cause = LossCause::kDisruption}), LossAction::kIgnore);
  EXPECT_EQ(action({.cause = LossCause::kNodeLost}), LossAction::kIgnore);
  EXPECT_EQ(action(Exited(2, true)), LossAction::kFail);
  EXPECT_EQ(action({.exit_code = 4, .cannot_run = true}), LossAction::kFail);
  EXPECT_EQ(Judge({}, Role::kWorker, Exited(1)).rule, "");
}

TEST(JudgeTest, WhatTheOperatorDoesItselfIsJudgedByNoRule) {
  const std::vector<FailureRule> rules = {
      {.cause = LossCause::kDisruption, .action = LossAction::kFail}};
  const Verdict verdict =
      Judge(rules, Role::kWorker, {.cause = LossCause::kDisruption, .intended = true});
  EXPECT_EQ(verdict.action, LossAction::kIgnore);
  EXPECT_EQ(verdict.rule, "");
}

TEST(JudgeTest, TheFirstRuleThatFitsDecidesAndIsNamed) {
  const std::vector<FailureRule> rules = {
      {.cause = LossCause::kExit, .exit_codes = {3, 4}, .action = LossAction::kFail},
      {.cause = LossCause::kExit,
       .exit_codes = {4, 137},
       .roles = {Role::kWorker},
       .action = LossAction::kIgnore},
      {.cause = LossCause::kDisruption, .action = LossAction::kRestart}};
  const auto judged = [&](Role role, const ProcessLoss& loss) {
    const Verdict verdict = Judge(rules, role, loss);
    return std::pair(verdict.action, verdict.rule);
  };
  EXPECT_EQ(judged(Role::kWorker, Exited(4)),
            std::pair(LossAction::kFail, std::string("spec.runPolicy.failureRules[0]")));
  EXPECT_EQ(judged(Role::kWorker, Exited(137)),
            std::pair(LossAction::kIgnore, std::string("spec.runPolicy.failureRules[1]")));
  EXPECT_EQ(judged(Role::kDataServer, Exited(137)), std::pair(LossAction::kRestart, std::string()));
  EXPECT_EQ(judged(Role::kWorker, {.cause = LossCause::kDisruption}),
            std::pair(LossAction::kRestart, std::string("spec.runPolicy.failureRules[2]")));
}

TEST(JudgeTest, ARuleWithCodesIsNotForAnEndWithoutOne) {
  const std::vector<FailureRule> coded = {
      {.cause = LossCause::kExit, .exit_codes = {0}, .action = LossAction::kFail}};
  const std::vector<FailureRule> any = {{.cause = LossCause::kExit, .action = LossAction::kFail}};
  const ProcessLoss silent = {.how = "was silent for 10 s"};
  EXPECT_EQ(Judge(coded, Role::kWorker, silent).action, LossAction::kRestart);
  EXPECT_EQ(Judge(any, Role::kWorker, silent).action, LossAction::kFail);
}

class FailureRulesTest : public testing::Test {
 protected:
  static Harness RunningJob(std::vector<FailureRule> rules, std::uint32_t limit) {
    JobSettings settings = SmallJob();
    settings.failure_rules = std::move(rules);
    settings.restart_limit = limit;
    Harness job(settings);
    job.Begin();
    job.JoinAll();
    return job;
  }

  static Harness::Actions End(Harness& job, LossCause cause, std::optional<int> code = {}) {
    return job.Handle(ProcessExited{.id = kWorker0,
                                    .generation = job.GenerationOf(kWorker0),
                                    .how = "ended",
                                    .cause = cause,
                                    .exit_code = code});
  }
};

// Of memory or threads.
class LackTest : public testing::Test {
 protected:
  LackTest() { job_.Begin(); }

  void EndForLack() {
    job_.Handle(ProcessExited{.id = kWorker0,
                              .generation = job_.GenerationOf(kWorker0),
                              .how = "exited with code 4: no threads",
                              .cannot_run = true,
                              .exit_code = 4});
  }

  Harness job_;
};

TEST_F(LackTest, AProcessThatItsMachineHasNeverLetRunIsNotStartedAgain) {
  EndForLack();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_EQ(job_.state().message,
            "worker-0 exited with code 4: no threads: this machine does not let it run");
  EXPECT_EQ(job_.state().restarts, 0u);
}

TEST_F(LackTest, AProcessThatHasRunMayLackSomethingForAWhile) {
  job_.JoinAll();
  EndForLack();
  for (std::uint32_t lacks = 1; lacks <= 3; ++lacks) {
    EXPECT_EQ(job_.state().phase, Phase::kRunning) << lacks;
    EXPECT_EQ(job_.state().restarts, lacks);
    while (Pick<StartProcess>(job_.Pass(std::chrono::milliseconds(100), {kWorker0})).empty()) {
    }
    EndForLack();  // and does not even join
  }
}

TEST_F(LackTest, AUserWhoResumesWithTooLittleIsToldAtOnce) {
  job_.JoinAll();
  job_.RestartController();
  EndForLack();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
}

TEST_F(FailureRulesTest, ARuleFailsTheJobAndTheMessageNamesIt) {
  Harness job = RunningJob(
      {{.cause = LossCause::kExit, .exit_codes = {42}, .action = LossAction::kFail}}, 10);
  End(job, LossCause::kExit, 41);
  EXPECT_EQ(job.state().phase, Phase::kRunning);
  job.Pass(std::chrono::seconds(2), {kWorker0});
  job.Join(kWorker0, "second");
  End(job, LossCause::kExit, 42);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_EQ(job.state().message, "worker-0 ended: spec.runPolicy.failureRules[0] fails the job");
}

TEST_F(FailureRulesTest, WhatIsIgnoredStartsAgainWithBackoffAndCostsNothing) {
  Harness job = RunningJob({{.cause = LossCause::kExit, .action = LossAction::kIgnore}}, 0);
  const auto notes = Pick<Note>(End(job, LossCause::kExit, 1));
  EXPECT_THAT(notes,
              Contains(Field(&Note::text,
                             "worker-0 starts again in 1000 ms, which does not count against the "
                             "restart budget (spec.runPolicy.failureRules[0])")));
  EXPECT_THAT(Pick<StartProcess>(job.Pass(std::chrono::seconds(1), {kWorker0})),
              ElementsAre(StartProcess{kWorker0, 2}));
  EXPECT_EQ(job.state().restarts, 0u);
}

TEST_F(FailureRulesTest, ADisruptionMayBeCountedAndSpendTheBudget) {
  Harness job = RunningJob({{.cause = LossCause::kDisruption, .action = LossAction::kRestart}}, 1);
  End(job, LossCause::kDisruption);
  EXPECT_EQ(job.state().restarts, 1u);
  job.Pass(std::chrono::seconds(2), {kWorker0});
  job.Join(kWorker0, "second");
  End(job, LossCause::kDisruption);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("spec.runPolicy.failureRules[0]"));
}

TEST_F(FailureRulesTest, WhoIsDisruptedTimeAndAgainWaitsLongerAndLonger) {
  Harness job = RunningJob({}, 0);
  EXPECT_THAT(Pick<StartProcess>(End(job, LossCause::kDisruption)),
              ElementsAre(StartProcess{kWorker0, 2}));
  EXPECT_THAT(Pick<StartProcess>(End(job, LossCause::kDisruption)), testing::IsEmpty());
  EXPECT_THAT(Pick<StartProcess>(job.Pass(std::chrono::seconds(1), {kWorker0})),
              ElementsAre(StartProcess{kWorker0, 3}));
}

}  // namespace
}  // namespace adamant::controller
