#include "operator/control/job_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

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

TEST(JobSettingsTest, BucketsHaveTheBytesOfTheirParameters) {
  v1::TrainingJob job;
  job.mutable_spec()->mutable_model()->set_reference("adam-mnist");
  job.mutable_spec()->mutable_distribution()->mutable_parameter_servers()->set_buckets(64);
  const std::vector<std::uint64_t> bytes = SettingsOf(job).bucket_bytes;
  ASSERT_EQ(bytes.size(), 64u);
  const std::uint64_t parameters = (10 * 25 + 10) + (20 * 10 * 25 + 20) + (400 * 320 + 400) +
                                   (400 * 400 + 400) + (10 * 400 + 10);
  EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}), 4 * parameters);
  EXPECT_EQ(std::ranges::count(bytes, 0u), 54) << "ten shards, each in a bucket of its own";
}

TEST(JobSettingsTest, WhatKeepsANetFromLearningIsFound) {
  v1::TrainingJob job;
  job.mutable_spec()->mutable_distribution()->mutable_parameter_servers()->set_buckets(64);
  job.mutable_spec()->mutable_model()->set_reference("adam-mnist");
  v1::Optimiser& optimiser = *job.mutable_spec()->mutable_optimiser();
  optimiser.set_weight_decay(0.001);
  optimiser.set_momentum(0.99);
  EXPECT_FALSE(SettingsOf(job).hindrances.uncorrected);
  optimiser.set_asynchrony(v1::Optimiser::ASYNCHRONY_OFF);
  job.mutable_spec()->mutable_distribution()->set_workers(1);
  EXPECT_FALSE(SettingsOf(job).hindrances.uncorrected) << "it has nothing to correct";
  job.mutable_spec()->mutable_distribution()->set_workers(2);
  EXPECT_TRUE(SettingsOf(job).hindrances.uncorrected);
  EXPECT_FALSE(SettingsOf(job).hindrances.untrained_start);
  EXPECT_EQ(SettingsOf(job).hindrances.weight_decay, 0.001);
  EXPECT_EQ(SettingsOf(job).hindrances.momentum, 0.99);
  EXPECT_TRUE(SettingsOf(job).hindrances.frozen.empty());
  v1::LayerOptimiser& strong = *optimiser.add_layers();
  strong.set_layer("fc1");
  strong.set_weight_decay(0.5);
  v1::LayerOptimiser& frozen = *optimiser.add_layers();
  frozen.set_layer("conv1");
  frozen.set_rate(0);
  frozen.set_weight_decay(1);
  const controller::Hindrances some = SettingsOf(job).hindrances;
  EXPECT_EQ(some.weight_decay, 0.5) << "a frozen layer's does not count";
  EXPECT_TRUE(some.is_of_layer);
  EXPECT_EQ(some.frozen, std::vector<std::string>{"conv1"});
  EXPECT_FALSE(some.all_frozen);
  strong.set_rate(0);
  for (const char* layer : {"conv2", "fc2", "fc3"}) {
    v1::LayerOptimiser& other = *optimiser.add_layers();
    other.set_layer(layer);
    other.set_rate(0);
  }
  EXPECT_TRUE(SettingsOf(job).hindrances.all_frozen);
}

TEST(JobSettingsTest, WhatTheLengthOfTheJobFollowsFromIsTaken) {
  v1::TrainingJob job;
  job.mutable_spec()->mutable_data()->set_batch_size(64);
  job.mutable_spec()->mutable_distribution()->set_threads_per_worker(3);
  v1::Progress& warm_up =
      *job.mutable_spec()->mutable_optimiser()->mutable_schedule()->mutable_warm_up();
  warm_up.set_epochs(0.5);
  job.mutable_spec()->mutable_run_policy()->set_epoch_completion(0.75);
  EXPECT_EQ(SettingsOf(job).epoch_completion, 0.75);
  EXPECT_EQ(SettingsOf(job).batch_size, 64u);
  EXPECT_EQ(SettingsOf(job).threads_per_worker, 3u);
  EXPECT_EQ(SettingsOf(job).warm_up_epochs, 0.5);
  warm_up.set_examples(100);
  EXPECT_EQ(SettingsOf(job).warm_up_epochs, 0);
  EXPECT_EQ(SettingsOf(job).warm_up_examples, 100);
}

TEST(JobSettingsTest, WhatFollowsDivergenceIsThatOfThePolicy) {
  using Action = controller::OnDivergence::Action;
  v1::TrainingJob job;
  job.mutable_spec()->mutable_optimiser()->set_rate(0.25);
  v1::OnDivergence& policy = *job.mutable_spec()->mutable_run_policy()->mutable_on_divergence();
  policy.set_times(5);
  for (const auto& [action, expected] :
       {std::pair{v1::OnDivergence::ACTION_RECOVER, Action::kRecover},
        {v1::OnDivergence::ACTION_FAIL, Action::kFail},
        {v1::OnDivergence::ACTION_CONTINUE, Action::kContinue}}) {
    policy.set_action(action);
    const controller::JobSettings settings = SettingsOf(job);
    EXPECT_EQ(settings.on_divergence.action, expected);
    EXPECT_EQ(settings.on_divergence.times, 5u);
    EXPECT_EQ(settings.rate, 0.25);
  }
}

TEST(ScaleRatesTest, EveryRateThatIsSetIsMultipliedByItsOwnFactor) {
  v1::TrainingJob job;
  v1::Optimiser& optimiser = *job.mutable_spec()->mutable_optimiser();
  optimiser.set_rate(0.5);
  optimiser.set_weight_decay(0.1);
  v1::LayerOptimiser& own = *optimiser.add_layers();
  own.set_layer("conv1");
  own.set_rate(0.25);
  own.set_weight_decay(0.125);
  optimiser.add_layers()->set_layer("fc1");
  optimiser.add_layers()->set_rate(0);
  optimiser.mutable_layers(2)->set_layer("frozen");
  ScaleRates(0.5, {{"conv1", 1}, {"frozen", 0.5}}, job);
  EXPECT_EQ(optimiser.rate(), 0.25);
  EXPECT_EQ(optimiser.weight_decay(), 0.1);
  EXPECT_EQ(optimiser.layers(0).rate(), 0.25) << "it was written anew";
  EXPECT_EQ(optimiser.layers(0).weight_decay(), 0.125);
  EXPECT_FALSE(optimiser.layers(1).has_rate()) << "it has the job's";
  EXPECT_EQ(optimiser.layers(2).rate(), 0);
}

TEST(ScaleRatesTest, TheFirstAttemptGetsTheJobAsItIs) {
  v1::TrainingJob job;
  ScaleRates(1, {}, job);
  EXPECT_EQ(job.ByteSizeLong(), 0u);
}

}  // namespace
}  // namespace adamant::control
