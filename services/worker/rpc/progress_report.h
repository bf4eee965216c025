#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "services/common/base/busy_meter.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/protocol/control.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/sync/synchroniser.h"

namespace adamant::worker {

/// Content of a worker's heartbeats: how far its threads are, and what the exchange loop has
/// published. Threads: any.
class ProgressReport {
 public:
  /// Both must outlive this.
  ProgressReport(const Learner& learner, const Clock& clock) : learner_(learner), clock_(clock) {}

  /// The exchange loop begins a turn, or ends it.
  void OnTurn() { turns_.fetch_add(1, std::memory_order_relaxed); }

  /// Takes over the synchroniser's totals of now.
  void Publish(const SynchroniserStatistics& statistics);

  /// Returns totals since the process started.
  protocol::Heartbeat Read();

 private:
  // Adds the turns of each thread to `turns`.
  protocol::WorkerProgress SumOfThreads(std::vector<std::uint64_t>& turns) const;

  const Learner& learner_;
  const Clock& clock_;
  std::atomic<std::uint64_t> turns_{0};  // odd while the loop works

  // Guarded.
  Mutex mutex_;
  SynchroniserStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  BusyMeter busy_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::worker
