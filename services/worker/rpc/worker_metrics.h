#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "services/common/metrics/metrics.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/sync/synchroniser.h"

namespace adamant::worker {

/// The worker's metrics. Names and meanings: docs/metrics.md.
/// Threads: Update one at a time; the handles any.
class WorkerMetrics {
 public:
  /// `registry` must outlive this.
  explicit WorkerMetrics(metrics::Registry& registry);

  /// Takes over the totals of now. `resumed`: Resumption::timestamp.
  void Update(const Learner& learner, const SynchroniserStatistics& exchange, double resumed);

  const metrics::Histogram push_seconds;   ///< from sending a message to its reply
  const metrics::Histogram fetch_seconds;  ///< likewise
  const metrics::Counter push_bytes;
  const metrics::Counter fetch_bytes;
  const metrics::Histogram update_staleness;

 private:
  void UpdateDeadUnits(const DeadUnitBoard& board);

  metrics::Registry& registry_;
  metrics::Gauge threads_;
  metrics::Total examples_;
  metrics::Total steps_;
  metrics::Total pushes_;
  metrics::Total refused_;
  metrics::Total lost_;
  metrics::Total resent_;
  metrics::Total held_;
  metrics::Gauge retained_;
  metrics::Total fetches_;
  metrics::Gauge staleness_batches_;
  metrics::Gauge rate_factor_;
  metrics::Gauge memory_factor_;
  metrics::Gauge exchange_every_;
  metrics::Gauge resumed_;
  std::vector<metrics::Total> waits_;                 // by ThreadStatistics::Wait
  std::map<std::string, metrics::Gauge> dead_units_;  // by layer
};

}  // namespace adamant::worker
