#pragma once

#include <map>
#include <utility>
#include <variant>

#include "operator/control/failover_metrics.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/failure_rules.h"
#include "operator/core/state/messages.h"
#include "operator/job_series.h"
#include "operator/kube/job/job_observer.h"
#include "operator/kube_client/api/resource.h"
#include "operator/led_jobs.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/metrics/metrics.h"

namespace adamant {

/// Metrics of the jobs that this operator leads: of each, under its namespace and name, and of all
/// together. Names and meanings: docs/metrics.md.
/// Threads: any.
class JobMetrics final : public kube::JobObserver {
 public:
  /// The arguments must outlive this.
  JobMetrics(metrics::Registry& registry, const Clock& clock);

  void OnReport(const kube::ObjectKey& job, const kube::JobStanding& standing) override;
  void OnGone(const kube::ObjectKey& job) override;
  void OnAllGone() override;

  /// Takes the series of jobs out that have been over for long. Now and then.
  void Expire();

 private:
  using Handle = std::variant<metrics::Gauge, metrics::Total>;
  using Series = std::map<JobSeries, Handle>;

  void OnFailoverPhase(const kube::ObjectKey& job, const controller::FailoverPhase& phase) override;
  void OnPromoted(const kube::ObjectKey& job, const controller::Promoted& promoted) override;
  void OnNote(const kube::ObjectKey& job, const controller::Note& note) override;

  void Serve(const kube::ObjectKey& job, const JobValues& values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Set(const kube::ObjectKey& job, const JobSeries& series, double value, Series& served);
  void Remove(const Handle& handle);

  metrics::Registry& registry_;
  const control::FailoverMetrics failovers_;
  std::map<std::pair<controller::Role, controller::LossReason>, metrics::Counter> restarts_;  // all

  Mutex mutex_;
  LedJobs jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<kube::ObjectKey, Series> served_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant
