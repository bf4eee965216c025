#include "services/parameter_server/rpc/controller/replication_metrics.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "services/parameter_server/rpc/controller/control_messages.h"

namespace adamant::parameter_server {
namespace {

metrics::Gauge AddRole(metrics::Registry& registry, std::string_view role) {
  return registry.AddGauge("adamant_parameter_server_buckets",
                           "Buckets that this server holds or learns, by its role in them.",
                           {{"role", role}});
}

metrics::Histogram AddPhase(metrics::Registry& registry, std::string_view phase) {
  return registry.AddHistogram("adamant_parameter_server_failover_seconds",
                               "Time of the phases in which this server took over a bucket.",
                               metrics::ExponentialBounds(1e-3, 2, 16),
                               {{"phase", phase}});
}

void Observe(const metrics::Histogram& histogram, Clock::Duration duration) {
  histogram.Observe(std::chrono::duration<double>(duration).count());
}

}  // namespace

ReplicationMetrics::ReplicationMetrics(metrics::Registry& registry)
    : primaries(AddRole(registry, "primary")),
      secondaries(AddRole(registry, "secondary")),
      learners(AddRole(registry, "learner")),
      largest_lag(registry.AddGauge("adamant_parameter_server_largest_lag_entries",
                                    "Entries of a bucket that its slowest member has not "
                                    "acknowledged; the largest of the buckets.")),
      rollbacks(registry.AddCounter("adamant_parameter_server_rollbacks_total",
                                    "Buckets that came back from this server's disk after all "
                                    "their members were lost.")),
      detect_seconds(AddPhase(registry, "detect")),
      replace_seconds(AddPhase(registry, "replace")),
      reconcile_seconds(AddPhase(registry, "reconcile")) {}

void ReplicationMetrics::ObserveFailover(const BucketReport& report) const {
  if (TookOver(report)) {
    Observe(detect_seconds, report.failover.detect);
    Observe(replace_seconds, report.failover.replace);
    Observe(reconcile_seconds, report.failover.reconcile);
  }
}

void ReplicationMetrics::SetProgress(std::span<const BucketProgress> progress) const {
  Lsn largest = 0;
  for (const BucketProgress& bucket : progress) {
    largest = std::max(largest, bucket.lag);
  }
  largest_lag.Set(static_cast<double>(largest));
}

}  // namespace adamant::parameter_server
