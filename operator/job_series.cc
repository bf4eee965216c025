#include "operator/job_series.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "operator/core/job/job_report.h"
#include "operator/core/state/failure_rules.h"
#include "operator/core/state/messages.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube/status/restart_counter.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/job/replication_of.h"

namespace adamant {
namespace {

using controller::Role;

void Set(JobMetric metric, double value, JobValues& values) { values[{.metric = metric}] = value; }

void Set(JobMetric metric, std::uint64_t value, JobValues& values) {
  Set(metric, static_cast<double>(value), values);
}

// Of what 0 says that it is not known.
void SetKnown(JobMetric metric, double value, JobValues& values) {
  if (value != 0) {
    Set(metric, value, values);
  }
}

void AddProgress(const kube::JobStanding& standing, JobValues& values) {
  const controller::JobReport& report = standing.report;
  const controller::JobState& state = standing.state;
  values[{.metric = JobMetric::kPhase, .first = kube::PhaseText(standing.status)}] = 1;
  Set(JobMetric::kEpoch, report.epoch, values);
  Set(JobMetric::kEpochs, report.epochs, values);
  Set(JobMetric::kEpochExamples, report.counted_examples, values);
  SetKnown(JobMetric::kExamplesPerEpoch, static_cast<double>(report.total_examples), values);
  Set(JobMetric::kExamplesPerSecond, report.examples_per_second, values);
  SetKnown(JobMetric::kTrainingLoss, report.training_loss, values);
  SetKnown(JobMetric::kAccuracy, report.accuracy, values);
  Set(JobMetric::kAttempt, report.attempt, values);
  if (state.active.count() > 0) {
    const std::chrono::duration<double> productive = state.productive;
    Set(JobMetric::kGoodput, productive / state.active, values);
  }
}

void AddRole(Role role, const v1::RoleStatus& told, JobValues& values) {
  const std::string_view name = controller::RoleName(role);
  values[{JobMetric::kProcesses, name, "wanted"}] = static_cast<double>(told.desired());
  values[{JobMetric::kProcesses, name, "joined"}] = static_cast<double>(told.ready());
  for (const controller::LossReason cause : controller::kLossReasons) {
    values[{JobMetric::kRestarts, name, controller::LossReasonName(cause)}] =
        static_cast<double>(kube::RestartsOf(told, cause));
  }
}

void AddProcesses(const kube::JobStanding& standing, JobValues& values) {
  const v1::RolesStatus& roles = standing.status.roles();
  AddRole(Role::kWorker, roles.worker(), values);
  AddRole(Role::kDataServer, roles.data_server(), values);
  AddRole(Role::kParameterServer, roles.parameter_server(), values);
  const std::int64_t left =
      std::int64_t{standing.job.spec().run_policy().restart_budget().limit()} -
      standing.report.restarts;
  Set(JobMetric::kRestartsLeft, static_cast<double>(std::max<std::int64_t>(0, left)), values);
}

void AddBuckets(const kube::JobStanding& standing, JobValues& values) {
  const controller::BucketSummary& summary = standing.report.bucket_summary;
  for (const std::string_view state : controller::kBucketStates) {
    const auto count = summary.states.find(std::string(state));
    values[{.metric = JobMetric::kBuckets, .first = state}] =
        count == summary.states.end() ? 0 : count->second;
  }
  Set(JobMetric::kRolledBackUpdates, summary.rolled_back, values);
  Set(JobMetric::kBucketRestores, standing.state.restores, values);
  const job::Replication replication = job::ReplicationOf(standing.job);
  if (replication.mode == job::PersistenceMode::kDelayed) {
    Set(JobMetric::kLossWindow,
        std::chrono::duration<double>(replication.flush_interval).count(),
        values);
  }
}

void AddRecoveries(const RecoveryTimes& recoveries, JobValues& values) {
  for (const auto& [phase, sum] : recoveries.sums()) {
    values[{.metric = JobMetric::kRecoveries, .first = phase}] = sum.count;
    values[{.metric = JobMetric::kRecoverySeconds, .first = phase}] = sum.seconds;
  }
}

}  // namespace

JobValues ValuesOf(const kube::JobStanding& standing, const RecoveryTimes& recoveries) {
  JobValues values;
  AddProgress(standing, values);
  AddProcesses(standing, values);
  AddBuckets(standing, values);
  AddRecoveries(recoveries, values);
  return values;
}

}  // namespace adamant
