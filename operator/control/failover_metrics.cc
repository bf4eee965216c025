#include "operator/control/failover_metrics.h"

namespace adamant::control {

FailoverMetrics::FailoverMetrics(metrics::Registry& registry)
    : failovers_(registry.AddCounter("adamant_controller_failovers_total",
                                     "Buckets that a secondary has taken over.")) {
  for (const controller::FailoverPhase::Kind kind : controller::kFailoverPhases) {
    phases_.emplace(kind,
                    registry.AddHistogram("adamant_controller_failover_seconds",
                                          "Time of each phase of a bucket's promotion.",
                                          metrics::ExponentialBounds(0.001, 2, 16),
                                          {{"phase", controller::FailoverPhaseName(kind)}}));
  }
}

void FailoverMetrics::OnPhase(const controller::FailoverPhase& phase) const {
  phases_.at(phase.kind).Observe(phase.seconds);
}

void FailoverMetrics::OnPromoted(const controller::Promoted& promoted) const {
  failovers_.Increment(static_cast<double>(promoted.buckets));
}

}  // namespace adamant::control
