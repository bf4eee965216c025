#include "services/worker/rpc/progress_report.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace adamant::worker {

void ProgressReport::Publish(const SynchroniserStatistics& statistics) {
  MutexLock lock(mutex_);
  statistics_ = statistics;
}

protocol::Heartbeat ProgressReport::Read() {
  std::vector<std::uint64_t> turns = {turns_.load(std::memory_order_relaxed)};
  protocol::WorkerProgress progress = SumOfThreads(turns);
  progress.dead_units = learner_.dead_units().Read();
  MutexLock lock(mutex_);
  progress.pushes_acknowledged = statistics_.pushes_acknowledged;
  progress.pushes_refused = statistics_.pushes_refused;
  progress.updates_lost = statistics_.updates_lost;
  progress.updates_resent = statistics_.updates_resent;
  if (statistics_.weight_growth > 0) {
    progress.weight_growth = statistics_.weight_growth;
    progress.grown_layer = learner_.layout().parameters()[statistics_.grown_tensor].layer;
  }
  progress.retained_bytes = statistics_.retained_bytes;
  progress.held_seconds = std::chrono::duration<double>(statistics_.paused).count();
  const auto& update_staleness = statistics_.update_staleness.counts();
  progress.update_staleness_counts = {update_staleness.begin(), update_staleness.end()};
  const auto& batches_of_others = statistics_.batches_of_others.counts();
  progress.batches_of_others = {batches_of_others.begin(), batches_of_others.end()};
  const std::chrono::duration<double> busy = busy_.Look(turns, clock_.Now());
  return {.progress = std::move(progress), .busy_seconds = busy.count()};
}

protocol::WorkerProgress ProgressReport::SumOfThreads(std::vector<std::uint64_t>& turns) const {
  protocol::WorkerProgress sum;
  for (std::size_t i = 0; i < learner_.threads(); ++i) {
    const ThreadStatistics& thread = learner_.channel(i).statistics();
    sum.trained_examples += thread.examples.load(std::memory_order_relaxed);
    sum.correct += thread.correct.load(std::memory_order_relaxed);
    sum.loss_sum += thread.loss_sum.load(std::memory_order_relaxed);
    sum.epoch = std::max(sum.epoch, thread.epoch.load(std::memory_order_relaxed));
    turns.push_back(thread.turns.load(std::memory_order_relaxed));
  }
  return sum;
}

}  // namespace adamant::worker
