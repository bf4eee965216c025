#pragma once

#include <vector>

#include "services/common/metrics/metrics.h"

namespace adamant::parameter_server {

/// Metrics of traffic between parameter servers. Names and meanings: docs/metrics.md. Threads: any.
struct PeerMetrics {
  explicit PeerMetrics(metrics::Registry& registry);

  std::vector<metrics::Counter> sent;      ///< by kind: index of PeerMessage::kind
  std::vector<metrics::Counter> received;  ///< the same
  metrics::Counter sent_bytes;
  metrics::Counter received_bytes;
};

}  // namespace adamant::parameter_server
