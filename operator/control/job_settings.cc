#include "operator/control/job_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/durations.h"
#include "services/common/job/job.h"
#include "services/common/job/replication_of.h"
#include "services/common/job/warm_start_of.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::control {
namespace {

using controller::LossAction;
using controller::LossCause;
using controller::Role;
using v1::FailureRule;

LossCause CauseOf(FailureRule::Cause cause) {
  switch (cause) {
    case FailureRule::CAUSE_DISRUPTION:
      return LossCause::kDisruption;
    case FailureRule::CAUSE_NODE_LOST:
      return LossCause::kNodeLost;
    default:
      return LossCause::kExit;
  }
}

LossAction ActionOf(FailureRule::Action action) {
  switch (action) {
    case FailureRule::ACTION_FAIL_JOB:
      return LossAction::kFail;
    case FailureRule::ACTION_IGNORE:
      return LossAction::kIgnore;
    default:
      return LossAction::kRestart;
  }
}

Role RoleOf(int role) {
  switch (role) {
    case FailureRule::ROLE_DATA_SERVER:
      return Role::kDataServer;
    case FailureRule::ROLE_PARAMETER_SERVER:
      return Role::kParameterServer;
    default:
      return Role::kWorker;
  }
}

std::vector<controller::FailureRule> RulesOf(const v1::RunPolicy& policy) {
  std::vector<controller::FailureRule> rules;
  for (const FailureRule& rule : policy.failure_rules()) {
    controller::FailureRule& added = rules.emplace_back();
    added.cause = CauseOf(rule.cause());
    added.exit_codes.assign(rule.exit_codes().begin(), rule.exit_codes().end());
    for (const int role : rule.roles()) {
      added.roles.push_back(RoleOf(role));
    }
    added.action = ActionOf(rule.action());
  }
  return rules;
}

controller::OnDivergence OnDivergenceOf(const v1::OnDivergence& policy) {
  using Action = controller::OnDivergence::Action;
  controller::OnDivergence decoded{.action = Action::kRecover,
                                   .times = static_cast<std::uint32_t>(policy.times())};
  if (policy.action() == v1::OnDivergence::ACTION_FAIL) {
    decoded.action = Action::kFail;
  } else if (policy.action() == v1::OnDivergence::ACTION_CONTINUE) {
    decoded.action = Action::kContinue;
  }
  return decoded;
}

std::vector<std::uint64_t> BucketBytesOf(const v1::TrainingJob& job) {
  const auto buckets =
      static_cast<std::uint32_t>(job.spec().distribution().parameter_servers().buckets());
  const absl::StatusOr<model::Graph> graph = model::BuildGraph(job::NetOf(job));
  if (!graph.ok()) {
    return {};  // nobody knows: only few move at a time
  }
  const ShardLayout layout(graph->parameters, buckets);
  std::vector<std::uint64_t> bytes(buckets);
  for (const Shard& shard : layout.shards()) {
    bytes[shard.bucket] += shard.size() * sizeof(float);
  }
  return bytes;
}

controller::Hindrances HindrancesOf(const v1::TrainingJob& job) {
  controller::Hindrances found;
  const absl::StatusOr<model::Graph> graph = model::BuildGraph(job::NetOf(job));
  if (!graph.ok()) {
    return found;
  }
  const v1::Optimiser& optimiser = job.spec().optimiser();
  found.momentum = optimiser.momentum();
  found.uncorrected = optimiser.asynchrony() == v1::Optimiser::ASYNCHRONY_OFF &&
                      job.spec().distribution().workers() > 1;
  found.untrained_start = job::FadesInUntrained(job);
  found.rate_falls = optimiser.schedule().kind() > v1::Schedule::KIND_CONSTANT;
  std::set<std::string> trained;
  std::set<std::string> frozen;
  for (const Parameter& parameter : graph->parameters) {
    const auto own =
        std::ranges::find(optimiser.layers(), parameter.layer, &v1::LayerOptimiser::layer);
    const bool has_own = own != optimiser.layers().end();
    const bool is_frozen = has_own && own->has_rate() && own->rate() == 0;
    (is_frozen ? frozen : trained).insert(parameter.layer);
    const bool is_of_layer = has_own && own->has_weight_decay();
    const double decay = is_of_layer ? own->weight_decay() : optimiser.weight_decay();
    if (!is_frozen && decay > found.weight_decay) {
      found.weight_decay = decay;
      found.is_of_layer = is_of_layer;
    }
  }
  found.frozen.assign(frozen.begin(), frozen.end());
  found.all_frozen = trained.empty() && !frozen.empty();
  return found;
}

void TakeLength(const v1::JobSpec& spec, controller::JobSettings& settings) {
  settings.batch_size = static_cast<std::uint64_t>(spec.data().batch_size());
  settings.threads_per_worker =
      static_cast<std::uint32_t>(spec.distribution().threads_per_worker());
  settings.epoch_completion = spec.run_policy().epoch_completion();
  const v1::Progress& warm_up = spec.optimiser().schedule().warm_up();
  settings.warm_up_epochs = warm_up.epochs();
  settings.warm_up_examples = static_cast<double>(warm_up.examples());
}

void TakeDeadlines(const v1::RunPolicy& policy, controller::JobSettings& settings) {
  if (policy.has_active_deadline()) {
    settings.active_deadline = job::ToMilliseconds(policy.active_deadline());
  }
  if (policy.has_epoch_deadline()) {
    settings.epoch_deadline = job::ToMilliseconds(policy.epoch_deadline());
  }
  if (policy.has_start_deadline()) {
    settings.start_deadline = job::ToMilliseconds(policy.start_deadline());
  }
  if (policy.on_start_deadline() == v1::RunPolicy::ON_START_DEADLINE_FAIL) {
    settings.on_start_deadline = controller::OnStartDeadline::kFail;
  }
}

void TakeDetection(const v1::Detection& detection, controller::JobSettings& settings) {
  if (detection.has_heartbeat()) {
    settings.silence_timeout = job::ToMilliseconds(detection.heartbeat());
  }
  if (detection.has_hang()) {
    settings.hang_timeout = job::ToMilliseconds(detection.hang());
  }
}

}  // namespace

controller::JobSettings SettingsOf(const v1::TrainingJob& job) {
  const v1::Distribution& distribution = job.spec().distribution();
  const v1::RunPolicy& policy = job.spec().run_policy();
  const v1::ParameterServers& servers = distribution.parameter_servers();
  const job::Replication replication = job::ReplicationOf(job);
  controller::JobSettings settings{
      .name = job.metadata().name(),
      .workers = static_cast<std::uint32_t>(distribution.workers()),
      .data_servers = static_cast<std::uint32_t>(distribution.data_servers()),
      .parameter_servers = static_cast<std::uint32_t>(servers.count()),
      .buckets = static_cast<std::uint32_t>(servers.buckets()),
      .copies = replication.copies,
      .min_in_sync = replication.min_in_sync,
      .bucket_bytes = BucketBytesOf(job),
      .logged = IsLogged(replication.mode),
      .workers_retain = replication.retain_bytes > 0,
      .only_checkpoints = replication.mode == protocol::PersistenceMode::kNone,
      .epochs = static_cast<std::uint64_t>(policy.epochs()),
      .checkpoint_interval = job::ToMilliseconds(policy.checkpoint_interval()),
      .restart_limit = static_cast<std::uint32_t>(policy.restart_budget().limit()),
      .restart_backoff = job::ToMilliseconds(policy.restart_budget().backoff()),
      .failure_rules = RulesOf(policy),
      .rate = job.spec().optimiser().rate(),
      .hindrances = HindrancesOf(job)};
  for (const v1::LayerOptimiser& layer : job.spec().optimiser().layers()) {
    if (layer.has_rate()) {
      settings.layer_rates[layer.layer()] = layer.rate();
    }
  }
  TakeLength(job.spec(), settings);
  if (const std::int64_t classes = job::NetOf(job).classes; classes > 1) {
    settings.chance_loss = std::log(static_cast<double>(classes));
  }
  if (policy.has_on_divergence()) {
    settings.on_divergence = OnDivergenceOf(policy.on_divergence());
  }
  if (job.spec().data().train().has_digits()) {
    settings.training_examples =
        static_cast<std::uint64_t>(job.spec().data().train().digits().examples());
  }
  if (policy.has_target_accuracy()) {
    settings.target_accuracy = policy.target_accuracy();
  }
  TakeDeadlines(policy, settings);
  settings.starts_together =
      job.spec().pods().scheduling().gang_case() != v1::Scheduling::GANG_NOT_SET;
  TakeDetection(job.spec().detection(), settings);
  return settings;
}

void ScaleRates(double factor,
                const std::map<std::string, double>& layer_factors,
                v1::TrainingJob& job) {
  if (!job.spec().has_optimiser()) {
    return;
  }
  v1::Optimiser& optimiser = *job.mutable_spec()->mutable_optimiser();
  if (optimiser.has_rate()) {
    optimiser.set_rate(factor * optimiser.rate());
  }
  for (v1::LayerOptimiser& layer : *optimiser.mutable_layers()) {
    const auto own = layer_factors.find(layer.layer());
    if (layer.has_rate() && own != layer_factors.end()) {
      layer.set_rate(own->second * layer.rate());
    }
  }
}

}  // namespace adamant::control
