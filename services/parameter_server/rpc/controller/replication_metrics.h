#pragma once

#include <span>

#include "services/common/metrics/metrics.h"
#include "services/common/protocol/buckets.h"
#include "services/parameter_server/core/driver.h"

namespace adamant::parameter_server {

/// Metrics of replication on this server. Names and meanings: docs/metrics.md. Threads: any.
struct ReplicationMetrics {
  explicit ReplicationMetrics(metrics::Registry& registry);

  /// The phases of a promotion, if there was one.
  void ObserveFailover(const protocol::BucketState& state) const;

  /// Of the buckets that this server is primary of.
  void SetProgress(std::span<const BucketProgress> progress) const;

  metrics::Gauge primaries;  ///< buckets by their copy here
  metrics::Gauge secondaries;
  metrics::Gauge learners;
  metrics::Gauge largest_lag;
  metrics::Counter rollbacks;
  metrics::Histogram detect_seconds;
  metrics::Histogram replace_seconds;
  metrics::Histogram reconcile_seconds;
};

}  // namespace adamant::parameter_server
