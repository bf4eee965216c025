#include "services/parameter_server/rpc/controller/replication_metrics.h"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace adamant::parameter_server {
namespace {

metrics::Gauge AddCopy(metrics::Registry& registry, std::string_view copy) {
  return registry.AddGauge("adamant_parameter_server_buckets",
                           "Buckets that this server holds or learns, by its role in them.",
                           {{"copy", copy}});
}

metrics::Histogram AddPhase(metrics::Registry& registry, std::string_view phase) {
  return registry.AddHistogram("adamant_parameter_server_failover_seconds",
                               "Time of the phases in which this server took over a bucket.",
                               metrics::ExponentialBounds(1e-3, 2, 16),
                               {{"phase", phase}});
}

}  // namespace

ReplicationMetrics::ReplicationMetrics(metrics::Registry& registry)
    : primaries(AddCopy(registry, "primary")),
      secondaries(AddCopy(registry, "secondary")),
      learners(AddCopy(registry, "learner")),
      largest_lag(registry.AddGauge("adamant_parameter_server_largest_lag_entries",
                                    "Entries of a bucket that its slowest member has not "
                                    "acknowledged; the largest of the buckets.")),
      rollbacks(registry.AddCounter("adamant_parameter_server_rollbacks_total",
                                    "Buckets that came back from this server's disk after all "
                                    "their members were lost.")),
      detect_seconds(AddPhase(registry, "detect")),
      replace_seconds(AddPhase(registry, "replace")),
      reconcile_seconds(AddPhase(registry, "reconcile")) {}

void ReplicationMetrics::ObserveFailover(const protocol::BucketState& state) const {
  if (state.failover) {
    detect_seconds.Observe(state.failover->detect_seconds);
    replace_seconds.Observe(state.failover->replace_seconds);
    reconcile_seconds.Observe(state.failover->reconcile_seconds);
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
