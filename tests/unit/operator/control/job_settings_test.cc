#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "operator/control/codec.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::control {
namespace {

using controller::LossAction;
using controller::LossCause;
using controller::Role;
using v1::FailureRule;

TEST(JobSettingsTest, FailureRulesKeepTheirOrderAndFields) {
  v1::TrainingJob job;
  FailureRule& first = *job.mutable_spec()->mutable_run_policy()->add_failure_rules();
  first.set_cause(FailureRule::CAUSE_EXIT);
  first.add_exit_codes(3);
  first.add_exit_codes(137);
  first.add_roles(FailureRule::ROLE_WORKER);
  first.add_roles(FailureRule::ROLE_PARAMETER_SERVER);
  first.set_action(FailureRule::ACTION_FAIL_JOB);
  FailureRule& second = *job.mutable_spec()->mutable_run_policy()->add_failure_rules();
  second.set_cause(FailureRule::CAUSE_NODE_LOST);
  second.set_action(FailureRule::ACTION_IGNORE);
  FailureRule& third = *job.mutable_spec()->mutable_run_policy()->add_failure_rules();
  third.set_cause(FailureRule::CAUSE_DISRUPTION);
  third.add_roles(FailureRule::ROLE_DATA_SERVER);
  third.set_action(FailureRule::ACTION_RESTART_POD);
  const auto rules = SettingsOf(job).failure_rules;
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].cause, LossCause::kExit);
  EXPECT_EQ(rules[0].exit_codes, (std::vector<int>{3, 137}));
  EXPECT_EQ(rules[0].roles, (std::vector<Role>{Role::kWorker, Role::kParameterServer}));
  EXPECT_EQ(rules[0].action, LossAction::kFail);
  EXPECT_EQ(rules[1].cause, LossCause::kNodeLost);
  EXPECT_EQ(rules[1].action, LossAction::kIgnore);
  EXPECT_EQ(rules[2].cause, LossCause::kDisruption);
  EXPECT_EQ(rules[2].roles, std::vector<Role>{Role::kDataServer});
  EXPECT_EQ(rules[2].action, LossAction::kRestart);
}

TEST(JobSettingsTest, DetectionIsObeyedWhereItIsGiven) {
  v1::TrainingJob job;
  const controller::JobSettings defaults;
  EXPECT_EQ(SettingsOf(job).silence_timeout, defaults.silence_timeout);
  EXPECT_EQ(SettingsOf(job).hang_timeout, defaults.hang_timeout);
  job.mutable_spec()->mutable_detection()->mutable_heartbeat()->set_seconds(3);
  job.mutable_spec()->mutable_detection()->mutable_hang()->set_seconds(60);
  EXPECT_EQ(SettingsOf(job).silence_timeout, std::chrono::seconds(3));
  EXPECT_EQ(SettingsOf(job).hang_timeout, std::chrono::seconds(60));
}

}  // namespace
}  // namespace adamant::control
