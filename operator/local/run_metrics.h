#pragma once

#include <map>
#include <string>
#include <string_view>

#include "operator/control/failover_metrics.h"
#include "operator/core/job/job_controller.h"
#include "operator/core/state/actions.h"
#include "services/common/metrics/metrics.h"

namespace adamant::local {

/// Measurements of the controller of a run.
/// Threads: one.
class RunMetrics {
 public:
  /// `registry` must outlive this.
  explicit RunMetrics(metrics::Registry& registry);

  void OnFailoverPhase(const controller::FailoverPhase& phase) { failovers_.OnPhase(phase); }
  void OnPromoted(const controller::Promoted& promoted) { failovers_.OnPromoted(promoted); }
  void OnReport(const controller::JobReport& report);

 private:
  std::map<std::string, metrics::Gauge, std::less<>> buckets_;  // by state
  control::FailoverMetrics failovers_;
  metrics::Total restores_;
  metrics::Total rolled_back_;
  metrics::Gauge epoch_;
  metrics::Gauge lag_;
  metrics::Gauge unflushed_;
  metrics::Gauge alarms_;
  metrics::Gauge held_;
};

}  // namespace adamant::local
