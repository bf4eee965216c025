#pragma once

#include <atomic>
#include <cstdint>

#include "services/common/base/busy_meter.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/sync/synchroniser.h"

namespace adamant::v1 {
class Heartbeat;
}  // namespace adamant::v1

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

  /// Totals since the process started.
  void Fill(v1::Heartbeat& heartbeat);

 private:
  const Learner& learner_;
  const Clock& clock_;
  std::atomic<std::uint64_t> turns_{0};  // odd while the loop works

  // Guarded.
  Mutex mutex_;
  SynchroniserStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  BusyMeter busy_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::worker
