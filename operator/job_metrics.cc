#include "operator/job_metrics.h"

#include <set>

#include "services/common/base/check.h"

namespace adamant {
namespace {

using kube::ObjectKey;

metrics::Gauge GaugeOfProcesses(metrics::Registry& registry,
                                const ObjectKey& job,
                                const JobSeries& series) {
  switch (series.metric) {
    case JobMetric::kAttempt:
      return registry.AddGauge("adamant_job_attempt",
                               "Attempt at training: 1, and one more for each time that it went "
                               "back.",
                               {{"namespace", job.ns}, {"job", job.name}});
    case JobMetric::kRestartsLeft:
      return registry.AddGauge("adamant_job_restarts_left",
                               "Restarts that the budget still has.",
                               {{"namespace", job.ns}, {"job", job.name}});
    case JobMetric::kBuckets:
      return registry.AddGauge("adamant_job_buckets",
                               "Buckets, by how they are doing.",
                               {{"namespace", job.ns}, {"job", job.name}, {"state", series.first}});
    case JobMetric::kProcesses:
      return registry.AddGauge("adamant_job_processes",
                               "Processes: `wanted`, and of these `joined`.",
                               {{"namespace", job.ns},
                                {"job", job.name},
                                {"role", series.first},
                                {"state", series.second}});
    case JobMetric::kLossWindow:
      return registry.AddGauge("adamant_job_loss_window_seconds",
                               "Time of which updates may be lost with all copies; only in the "
                               "mode Delayed.",
                               {{"namespace", job.ns}, {"job", job.name}});
    default:
      CheckFailed("a gauge has a name", __FILE__, __LINE__, "add it to GaugeOf");
  }
}

metrics::Gauge GaugeOf(metrics::Registry& registry, const ObjectKey& job, const JobSeries& series) {
  switch (series.metric) {
    case JobMetric::kPhase:
      return registry.AddGauge("adamant_job_phase",
                               "1; only the phase is there that the job is in.",
                               {{"namespace", job.ns}, {"job", job.name}, {"phase", series.first}});
    case JobMetric::kEpoch:
      return registry.AddGauge("adamant_job_epoch",
                               "Epoch that is open, from 1.",
                               {{"namespace", job.ns}, {"job", job.name}});
    case JobMetric::kEpochs:
      return registry.AddGauge("adamant_job_epochs",
                               "Epochs after which the job ends.",
                               {{"namespace", job.ns}, {"job", job.name}});
    case JobMetric::kEpochExamples:
      return registry.AddGauge("adamant_job_epoch_examples",
                               "Examples of the open epoch that are counted.",
                               {{"namespace", job.ns}, {"job", job.name}});
    case JobMetric::kExamplesPerEpoch:
      return registry.AddGauge("adamant_job_examples_per_epoch",
                               "Examples of an epoch.",
                               {{"namespace", job.ns}, {"job", job.name}});
    case JobMetric::kExamplesPerSecond:
      return registry.AddGauge("adamant_job_examples_per_second",
                               "Examples counted a second, over ten seconds; 0 while training "
                               "stands.",
                               {{"namespace", job.ns}, {"job", job.name}});
    case JobMetric::kTrainingLoss:
      return registry.AddGauge("adamant_job_training_loss",
                               "Training loss, mean over ten seconds.",
                               {{"namespace", job.ns}, {"job", job.name}});
    case JobMetric::kAccuracy:
      return registry.AddGauge("adamant_job_accuracy_ratio",
                               "Top-1 on the validation data, of the newest evaluated model.",
                               {{"namespace", job.ns}, {"job", job.name}});
    case JobMetric::kGoodput:
      return registry.AddGauge("adamant_job_goodput_ratio",
                               "Share of the active time in which training got on and was not "
                               "undone.",
                               {{"namespace", job.ns}, {"job", job.name}});
    default:
      return GaugeOfProcesses(registry, job, series);
  }
}

metrics::Counter CounterOf(metrics::Registry& registry,
                           const ObjectKey& job,
                           const JobSeries& series) {
  switch (series.metric) {
    case JobMetric::kRestarts:
      return registry.AddCounter("adamant_job_restarts_total",
                                 "Processes that were started again after a loss.",
                                 {{"namespace", job.ns},
                                  {"job", job.name},
                                  {"role", series.first},
                                  {"cause", series.second}});
    case JobMetric::kRecoveries:
      return registry.AddCounter(
          "adamant_job_recoveries_total",
          "Phases of recoveries that are over.",
          {{"namespace", job.ns}, {"job", job.name}, {"phase", series.first}});
    case JobMetric::kRecoverySeconds:
      return registry.AddCounter(
          "adamant_job_recovery_seconds_total",
          "Time of the phases of recoveries that are over.",
          {{"namespace", job.ns}, {"job", job.name}, {"phase", series.first}});
    case JobMetric::kRolledBackUpdates:
      return registry.AddCounter("adamant_job_rolled_back_updates_total",
                                 "Updates lost from memory with all copies.",
                                 {{"namespace", job.ns}, {"job", job.name}});
    case JobMetric::kBucketRestores:
      return registry.AddCounter("adamant_job_bucket_restores_total",
                                 "Buckets that came back from disk.",
                                 {{"namespace", job.ns}, {"job", job.name}});
    default:
      CheckFailed("a counter has a name", __FILE__, __LINE__, "add it to CounterOf");
  }
}

}  // namespace

JobMetrics::JobMetrics(metrics::Registry& registry, const Clock& clock)
    : registry_(registry), failovers_(registry), jobs_(clock) {
  for (const auto role : {controller::Role::kWorker,
                          controller::Role::kDataServer,
                          controller::Role::kParameterServer}) {
    for (const controller::LossReason cause : controller::kLossReasons) {
      restarts_.emplace(
          std::pair(role, cause),
          registry.AddCounter("adamant_operator_restarts_total",
                              "Processes of jobs that were started again after a loss.",
                              {{"role", controller::RoleName(role)},
                               {"cause", controller::LossReasonName(cause)}}));
    }
  }
}

void JobMetrics::OnReport(const ObjectKey& job, const kube::JobStanding& standing) {
  const MutexLock lock(mutex_);
  Serve(job, jobs_.OnReport(job, standing));
}

void JobMetrics::OnFailoverPhase(const ObjectKey& job, const controller::FailoverPhase& phase) {
  failovers_.OnPhase(phase);
  const MutexLock lock(mutex_);
  jobs_.OnFailoverPhase(job, phase);
}

void JobMetrics::OnPromoted(const ObjectKey& /*job*/, const controller::Promoted& promoted) {
  failovers_.OnPromoted(promoted);
}

void JobMetrics::OnNote(const ObjectKey& job, const controller::Note& note) {
  if (note.kind == controller::Note::Kind::kRestarting && note.member) {
    restarts_.at({note.member->role, note.reason}).Increment();
  }
  const MutexLock lock(mutex_);
  jobs_.OnNote(job, note);
}

void JobMetrics::OnGone(const ObjectKey& job) {
  const MutexLock lock(mutex_);
  jobs_.OnGone(job);
}

void JobMetrics::Expire() {
  const MutexLock lock(mutex_);
  for (const ObjectKey& job : jobs_.Expired()) {
    Serve(job, {});
  }
}

// Name by name: to take them out one by one would take the square of their number.
void JobMetrics::OnAllGone() {
  const MutexLock lock(mutex_);
  std::set<JobMetric> removed;
  for (const auto& [job, all] : served_) {
    for (const auto& [series, handle] : all) {
      if (!removed.insert(series.metric).second) {
        continue;
      }
      if (const auto* gauge = std::get_if<metrics::Gauge>(&handle)) {
        registry_.RemoveAllLike(*gauge);
      } else {
        registry_.RemoveAllLike(std::get<metrics::Total>(handle).counter());
      }
    }
  }
  served_.clear();
  jobs_.Clear();
}

void JobMetrics::Serve(const ObjectKey& job, const JobValues& values) {
  const auto found = served_.try_emplace(job).first;
  Series& served = found->second;
  std::erase_if(served, [&](const auto& series) {
    if (values.contains(series.first)) {
      return false;
    }
    Remove(series.second);
    return true;
  });
  for (const auto& [series, value] : values) {
    Set(job, series, value, served);
  }
  if (served.empty()) {
    served_.erase(found);
  }
}

// A total that falls, as the last leader had not written all of it, or as it is of another job of
// that name, begins anew.
void JobMetrics::Set(const ObjectKey& job, const JobSeries& series, double value, Series& served) {
  auto found = served.find(series);
  if (!IsCounter(series.metric)) {
    if (found == served.end()) {
      found = served.emplace(series, GaugeOf(registry_, job, series)).first;
    }
    return std::get<metrics::Gauge>(found->second).Set(value);
  }
  if (found != served.end() && value < std::get<metrics::Total>(found->second).reached()) {
    Remove(found->second);
    served.erase(found);
    found = served.end();
  }
  if (found == served.end()) {
    found = served.emplace(series, metrics::Total(CounterOf(registry_, job, series))).first;
  }
  std::get<metrics::Total>(found->second).Reach(value);
}

void JobMetrics::Remove(const Handle& handle) {
  if (const auto* gauge = std::get_if<metrics::Gauge>(&handle)) {
    registry_.Remove(*gauge);
  } else {
    registry_.Remove(std::get<metrics::Total>(handle).counter());
  }
}

}  // namespace adamant
