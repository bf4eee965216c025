#include "services/worker/rpc/worker_metrics.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace adamant::worker {
namespace {

const std::vector<double> kSecondsBounds = metrics::ExponentialBounds(0.0005, 2, 16);
const std::vector<double> kStalenessBounds = metrics::ExponentialBounds(1, 2, 16);

constexpr std::array<std::string_view, ThreadStatistics::kWaits> kReasons = {
    "batch", "accumulator", "fetch", "command"};

}  // namespace

WorkerMetrics::WorkerMetrics(metrics::Registry& registry)
    : push_seconds(registry.AddHistogram("adamant_worker_push_seconds",
                                         "Time from sending a push to a server to its reply",
                                         kSecondsBounds)),
      fetch_seconds(registry.AddHistogram("adamant_worker_fetch_seconds",
                                          "Time from sending a fetch to a server to its reply",
                                          kSecondsBounds)),
      push_bytes(registry.AddCounter("adamant_worker_push_bytes_total",
                                     "Payload bytes of pushes, repeated ones included")),
      fetch_bytes(registry.AddCounter("adamant_worker_fetch_bytes_total",
                                      "Payload bytes of values fetched")),
      update_staleness(registry.AddHistogram(
          "adamant_worker_update_staleness",
          "Updates of a shard between a fetch and the push computed from it, largest of a reply",
          kStalenessBounds)),
      registry_(registry),
      threads_(registry.AddGauge("adamant_worker_threads", "Training threads")),
      examples_{registry.AddCounter("adamant_worker_examples_total", "Examples trained")},
      steps_{registry.AddCounter("adamant_worker_steps_total", "Batches trained")},
      pushes_{registry.AddCounter("adamant_worker_pushes_total", "Pushes acknowledged")},
      refused_{registry.AddCounter("adamant_worker_pushes_refused_total",
                                   "Pushes dropped because they held NaN or infinity")},
      lost_{registry.AddCounter("adamant_worker_updates_lost_total",
                                "Updates of shards that servers acknowledged and then lost")},
      resent_{registry.AddCounter(
          "adamant_worker_updates_resent_total",
          "Updates of shards that servers acknowledged, lost, and were sent again")},
      held_{registry.AddCounter("adamant_worker_held_seconds_total",
                                "Time for which no push started because of a checkpoint")},
      retained_(registry.AddGauge("adamant_worker_retained_bytes",
                                  "Acknowledged pushes that are not yet known to be on disk")),
      fetches_{registry.AddCounter("adamant_worker_fetches_total",
                                   "Fetches of all parameters completed")},
      staleness_batches_(registry.AddGauge(
          "adamant_worker_staleness_batches",
          "Batches of other workers between a fetch and the push computed from it, moving mean")),
      rate_factor_(
          registry.AddGauge("adamant_worker_rate_factor",
                            "Asynchrony factor on the learning rate: staleness factor times "
                            "gain")),
      memory_factor_(
          registry.AddGauge("adamant_worker_momentum_memory_factor",
                            "Memory factor, on the steps that momentum remembers, for asynchrony")),
      exchange_every_(registry.AddGauge("adamant_worker_exchange_every_batches",
                                        "Batches of a thread between two pushes")),
      resumed_(registry.AddGauge("adamant_worker_resumed_timestamp_seconds",
                                 "When a push was first acknowledged after a connection to a "
                                 "parameter server was lost or the membership had changed, Unix "
                                 "time")) {
  for (const std::string_view reason : kReasons) {
    waits_.emplace_back(registry.AddCounter("adamant_worker_wait_seconds_total",
                                            "Time that training threads waited, by what for",
                                            {{"for", reason}}));
  }
}

void WorkerMetrics::Update(const Learner& learner,
                           const SynchroniserStatistics& exchange,
                           double resumed) {
  resumed_.Set(resumed);
  threads_.Set(static_cast<double>(learner.threads()));
  double examples = 0;
  double steps = 0;
  std::array<double, ThreadStatistics::kWaits> waits{};
  for (std::size_t t = 0; t < learner.threads(); ++t) {
    const ThreadStatistics& thread = learner.channel(t).statistics();
    examples += static_cast<double>(thread.examples.load(std::memory_order_relaxed));
    steps += static_cast<double>(thread.steps.load(std::memory_order_relaxed));
    for (std::size_t i = 0; i < waits.size(); ++i) {
      waits[i] +=
          static_cast<double>(thread.wait_nanoseconds[i].load(std::memory_order_relaxed)) * 1e-9;
    }
  }
  examples_.Reach(examples);
  steps_.Reach(steps);
  pushes_.Reach(static_cast<double>(exchange.pushes_acknowledged));
  refused_.Reach(static_cast<double>(exchange.pushes_refused));
  lost_.Reach(static_cast<double>(exchange.updates_lost));
  resent_.Reach(static_cast<double>(exchange.updates_resent));
  held_.Reach(std::chrono::duration<double>(exchange.paused).count());
  retained_.Set(static_cast<double>(exchange.retained_bytes));
  fetches_.Reach(static_cast<double>(exchange.fetches));
  staleness_batches_.Set(exchange.staleness_batches);
  rate_factor_.Set(exchange.correction.rate);
  memory_factor_.Set(exchange.correction.memory);
  exchange_every_.Set(static_cast<double>(exchange.exchange_every));
  for (std::size_t i = 0; i < waits.size(); ++i) {
    waits_[i].Reach(waits[i]);
  }
  UpdateDeadUnits(learner.dead_units());
}

// A layer's gauge comes with its first count, for until then 0 would say too much.
void WorkerMetrics::UpdateDeadUnits(const DeadUnitBoard& board) {
  for (const DeadUnits& found : board.Read()) {
    auto gauge = dead_units_.find(found.layer);
    if (gauge == dead_units_.end()) {
      gauge = dead_units_
                  .emplace(found.layer,
                           registry_.AddGauge("adamant_worker_dead_units_ratio",
                                              "Share of the units of a layer to which no "
                                              "gradient came in any step sampled lately",
                                              {{"layer", found.layer}}))
                  .first;
    }
    gauge->second.Set(static_cast<double>(found.dead) / static_cast<double>(found.units));
  }
}

}  // namespace adamant::worker
