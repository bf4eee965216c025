#include "services/parameter_server/rpc/workers/traffic_metrics.h"

#include <string_view>

namespace adamant::parameter_server {

TrafficMetrics::TrafficMetrics(metrics::Registry& registry)
    : push_bytes(registry.AddCounter("adamant_parameter_server_push_bytes_total",
                                     "Payload bytes received in pushes.")),
      fetch_bytes(registry.AddCounter("adamant_parameter_server_fetch_bytes_total",
                                      "Payload bytes sent in answers to fetches.")),
      apply_seconds(registry.AddHistogram(
          "adamant_parameter_server_apply_seconds",
          "Time from a push's arrival until all of it is committed and applied.",
          metrics::ExponentialBounds(1e-5, 4, 12))),
      update_staleness(
          registry.AddHistogram("adamant_parameter_server_update_staleness",
                                "Updates applied between a worker's fetch and its update.",
                                metrics::ExponentialBounds(1, 2, 14))) {
  // In the order of PushOutcome.
  for (const std::string_view outcome : {"applied",
                                         "duplicate",
                                         "unexpected_sequence",
                                         "not_primary",
                                         "not_ready",
                                         "not_finite",
                                         "stale_incarnation",
                                         "malformed"}) {
    updates.push_back(registry.AddCounter("adamant_parameter_server_updates_total",
                                          "Updates to shards received, by what became of them.",
                                          {{"outcome", outcome}}));
  }
}

}  // namespace adamant::parameter_server
