#pragma once

#include <map>

#include "operator/core/state/actions.h"
#include "services/common/metrics/metrics.h"

namespace adamant::control {

/// Promotions of buckets, as controllers tell of them; of all jobs of a process together.
/// Threads: any.
class FailoverMetrics {
 public:
  /// `registry` must outlive this.
  explicit FailoverMetrics(metrics::Registry& registry);

  void OnPhase(const controller::FailoverPhase& phase) const;
  void OnPromoted(const controller::Promoted& promoted) const;

 private:
  const metrics::Counter failovers_;
  std::map<controller::FailoverPhase::Kind, metrics::Histogram> phases_;
};

}  // namespace adamant::control
