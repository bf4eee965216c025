#include "services/worker/rpc/progress_report.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "proto/adamant/v1/control.pb.h"

namespace adamant::worker {

void ProgressReport::Publish(const SynchroniserStatistics& statistics) {
  MutexLock lock(mutex_);
  statistics_ = statistics;
}

void ProgressReport::Fill(v1::Heartbeat& heartbeat) {
  v1::WorkerProgress& progress = *heartbeat.mutable_worker();
  double loss_sum = 0;
  std::uint64_t examples = 0;
  std::uint64_t correct = 0;
  DataEpoch epoch = 0;
  std::vector<std::uint64_t> turns = {turns_.load(std::memory_order_relaxed)};
  for (std::size_t i = 0; i < learner_.threads(); ++i) {
    const ThreadStatistics& thread = learner_.channel(i).statistics();
    examples += thread.examples.load(std::memory_order_relaxed);
    correct += thread.correct.load(std::memory_order_relaxed);
    loss_sum += thread.loss_sum.load(std::memory_order_relaxed);
    epoch = std::max(epoch, thread.epoch.load(std::memory_order_relaxed));
    turns.push_back(thread.turns.load(std::memory_order_relaxed));
  }
  progress.set_trained_examples(examples);
  progress.set_loss_sum(loss_sum);
  progress.set_correct(correct);
  progress.set_epoch(epoch);
  for (const DeadUnits& found : learner_.dead_units().Read()) {
    v1::DeadUnits& layer = *progress.add_dead_units();
    layer.set_layer(found.layer);
    layer.set_units(found.units);
    layer.set_dead(found.dead);
  }
  MutexLock lock(mutex_);
  heartbeat.set_busy_seconds(
      std::chrono::duration<double>(busy_.Look(turns, clock_.Now())).count());
  progress.set_pushes_acknowledged(statistics_.pushes_acknowledged);
  progress.set_pushes_refused(statistics_.pushes_refused);
  progress.set_updates_lost(statistics_.updates_lost);
  progress.set_updates_resent(statistics_.updates_resent);
  if (statistics_.weight_growth > 0) {
    progress.set_weight_growth(statistics_.weight_growth);
    progress.set_grown_layer(learner_.layout().parameters()[statistics_.grown_tensor].layer);
  }
  progress.set_retained_bytes(statistics_.retained_bytes);
  progress.set_held_seconds(std::chrono::duration<double>(statistics_.paused).count());
  for (const std::uint64_t count : statistics_.staleness.counts()) {
    progress.add_staleness_counts(count);
  }
  for (const std::uint64_t count : statistics_.batches_of_others.counts()) {
    progress.add_batches_of_others(count);
  }
}

}  // namespace adamant::worker
