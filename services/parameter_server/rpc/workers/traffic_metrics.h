#pragma once

#include <vector>

#include "services/common/metrics/metrics.h"

namespace adamant::parameter_server {

/// Metrics that the handlers of training traffic count. Names and meanings: docs/metrics.md.
/// Threads: any.
struct TrafficMetrics {
  explicit TrafficMetrics(metrics::Registry& registry);

  std::vector<metrics::Counter> updates;  ///< by PushOutcome
  metrics::Counter push_bytes;
  metrics::Counter fetch_bytes;
  metrics::Histogram apply_seconds;
  metrics::Histogram update_staleness;
};

}  // namespace adamant::parameter_server
