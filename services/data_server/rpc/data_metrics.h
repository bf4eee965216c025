#pragma once

#include "services/common/metrics/metrics.h"

namespace adamant::data_server {

/// Metrics of a data server. Names and meanings: docs/metrics.md. Threads: any.
struct DataMetrics {
  explicit DataMetrics(metrics::Registry& registry);

  metrics::Counter dispatched_train_examples;
  metrics::Counter dispatched_evaluate_examples;
  metrics::Counter counted_examples;
  metrics::Counter retrained_examples;
  metrics::Counter duplicate_results;
  metrics::Counter sent_bytes;
  metrics::Counter late_batches;
  metrics::Counter record_retries;
  metrics::Gauge prepared_batches;
  metrics::Gauge cache_bytes;
  metrics::Gauge workers;
  metrics::Histogram prepare_seconds;
  metrics::Histogram ledger_write_seconds;
};

}  // namespace adamant::data_server
