#include "operator/local/run_metrics.h"

#include <algorithm>

namespace adamant::local {

RunMetrics::RunMetrics(metrics::Registry& registry)
    : failovers_(registry),
      restores_{registry.AddCounter("adamant_controller_bucket_restores_total",
                                    "Buckets that came back from disk.")},
      rolled_back_{registry.AddCounter("adamant_controller_rolled_back_updates_total",
                                       "Updates lost from memory with all copies.")},
      epoch_(registry.AddGauge("adamant_controller_largest_bucket_epoch",
                               "Epoch of the bucket that has changed hands most often.")),
      lag_(registry.AddGauge("adamant_controller_largest_lag_entries",
                             "Entries of a bucket that its slowest member has not acknowledged; "
                             "the largest of all buckets.")),
      unflushed_(registry.AddGauge("adamant_controller_oldest_unflushed_seconds",
                                   "Age of the oldest change that is not stored, of all servers.")),
      alarms_(registry.AddGauge("adamant_controller_alarms",
                                "Processes that say they cannot do something, as store.")),
      held_(registry.AddGauge("adamant_controller_checkpoint_held_seconds",
                              "Time for which the last checkpoint held pushes.")) {
  for (const std::string_view state : controller::kBucketStates) {
    buckets_.emplace(
        state,
        registry.AddGauge(
            "adamant_controller_buckets", "Buckets, by how they are doing.", {{"state", state}}));
  }
}

void RunMetrics::OnReport(const controller::JobReport& report) {
  const controller::BucketSummary& summary = report.bucket_summary;
  for (const auto& [state, gauge] : buckets_) {
    const auto count = summary.states.find(state);
    gauge.Set(count == summary.states.end() ? 0 : count->second);
  }
  epoch_.Set(static_cast<double>(summary.largest_version));
  lag_.Set(static_cast<double>(summary.largest_lag));
  rolled_back_.Reach(static_cast<double>(summary.rolled_back));
  int alarms = 0;
  double unflushed = 0;
  for (const auto& member : report.members) {
    alarms += member.alarm.empty() ? 0 : 1;
    unflushed = std::max(unflushed, member.oldest_unflushed_seconds);
  }
  alarms_.Set(alarms);
  unflushed_.Set(unflushed);
  if (report.last_failover) {
    restores_.Reach(static_cast<double>(report.last_failover->restores));
  }
  held_.Set(report.checkpoint_held_seconds);
}

}  // namespace adamant::local
