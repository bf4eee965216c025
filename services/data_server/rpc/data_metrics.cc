#include "services/data_server/rpc/data_metrics.h"

namespace adamant::data_server {

DataMetrics::DataMetrics(metrics::Registry& registry)
    : dispatched_train_examples(
          registry.AddCounter("adamant_data_server_dealt_examples_total",
                              "Examples handed out, again after a loss included.",
                              {{"kind", "train"}})),
      dispatched_evaluate_examples(
          registry.AddCounter("adamant_data_server_dealt_examples_total",
                              "Examples handed out, again after a loss included.",
                              {{"kind", "evaluate"}})),
      counted_examples(registry.AddCounter("adamant_data_server_counted_examples_total",
                                           "Training examples acknowledged and stored as such.")),
      retrained_examples(
          registry.AddCounter("adamant_data_server_retrained_examples_total",
                              "Training examples handed out again after a worker was lost.")),
      duplicate_results(
          registry.AddCounter("adamant_data_server_duplicate_results_total",
                              "Results not counted: counted before, or their lease was void.")),
      sent_bytes(registry.AddCounter("adamant_data_server_sent_bytes_total",
                                     "Bytes of images sent to workers.")),
      late_batches(
          registry.AddCounter("adamant_data_server_late_batches_total",
                              "Batches that were not prepared when they were dispatched.")),
      record_retries(
          registry.AddCounter("adamant_data_server_record_retries_total",
                              "Accesses to the ledger's record that had to be repeated.")),
      prepared_batches(registry.AddGauge("adamant_data_server_prepared_batches",
                                         "Batches prepared and not yet dispatched.")),
      cache_bytes(
          registry.AddGauge("adamant_data_server_cache_bytes", "Memory of the prepared batches.")),
      workers(registry.AddGauge("adamant_data_server_workers", "Workers with an open stream.")),
      prepare_seconds(registry.AddHistogram("adamant_data_server_prepare_seconds",
                                            "Time to put one batch together and transform it.",
                                            metrics::ExponentialBounds(1e-5, 2, 16))),
      ledger_write_seconds(
          registry.AddHistogram("adamant_data_server_ledger_write_seconds",
                                "Time until a write of the ledger was answered, retries included.",
                                metrics::ExponentialBounds(1e-3, 2, 14))) {}

}  // namespace adamant::data_server
