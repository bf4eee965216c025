#include "operator/local/run_metrics.h"

#include <vector>

namespace adamant::local {
namespace {

using controller::FailoverPhase;

constexpr std::string_view kStates[] = {
    "Creating", "Ready", "Degraded", "Blocked", "FailingOver", "Restoring"};

constexpr std::pair<FailoverPhase::Kind, std::string_view> kPhases[] = {
    {FailoverPhase::Kind::kDetect, "detect"},
    {FailoverPhase::Kind::kReplace, "replace"},
    {FailoverPhase::Kind::kReconcile, "reconcile"},
    {FailoverPhase::Kind::kCatchUp, "catch_up"}};

}  // namespace

RunMetrics::RunMetrics(metrics::Registry& registry)
    : failovers_{registry.AddCounter("adamant_controller_failovers_total",
                                     "Buckets that a secondary has taken over.")},
      restores_{registry.AddCounter("adamant_controller_bucket_restores_total",
                                    "Buckets that came back from disk.")},
      rolled_back_{registry.AddCounter("adamant_controller_rolled_back_updates_total",
                                       "Updates lost from memory with all copies.")},
      held_(registry.AddGauge("adamant_controller_checkpoint_held_seconds",
                              "Time for which the last checkpoint held pushes.")) {
  for (const std::string_view state : kStates) {
    buckets_.emplace(
        state,
        registry.AddGauge(
            "adamant_controller_buckets", "Buckets, by how they are doing.", {{"state", state}}));
  }
  for (const auto& [kind, name] : kPhases) {
    phases_.emplace(kind,
                    registry.AddHistogram("adamant_controller_failover_seconds",
                                          "Time of each phase of a bucket's take-over.",
                                          metrics::ExponentialBounds(0.001, 2, 16),
                                          {{"phase", name}}));
  }
}

void RunMetrics::Total::Reach(std::uint64_t total) {
  if (total > reached) {
    counter.Increment(static_cast<double>(total - reached));
    reached = total;
  }
}

void RunMetrics::OnFailoverPhase(const FailoverPhase& phase) {
  phases_.at(phase.kind).Observe(phase.seconds);
}

void RunMetrics::OnReport(const controller::JobReport& report) {
  std::map<std::string_view, int> counts;
  std::uint64_t rolled_back = 0;
  for (const controller::BucketReport& bucket : report.buckets) {
    ++counts[bucket.state];
    rolled_back += bucket.rolled_back;
  }
  for (const auto& [state, gauge] : buckets_) {
    gauge.Set(counts[state]);
  }
  rolled_back_.Reach(rolled_back);
  if (report.last_failover) {
    failovers_.Reach(report.last_failover->failovers);
    restores_.Reach(report.last_failover->restores);
  }
  held_.Set(report.checkpoint_held_seconds);
}

}  // namespace adamant::local
