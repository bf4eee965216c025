#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/metrics/metrics.h"
#include "services/common/service/service.h"
#include "services/parameter_server/core/serving/parameter_server.h"

namespace adamant::parameter_server {

/// Returns the number of threads that read what is stored when the server starts.
unsigned ReadingThreads();

/// The thread that waits for the disk: reads it, does what the core wants of it, takes snapshots
/// for the controller and flushes when it is time. Threads: any.
class StorageLoop {
 public:
  /// The link and the registry must outlive this.
  StorageLoop(service::ControllerLink& controller, metrics::Registry& registry);
  ~StorageLoop();

  /// Starts the thread, which first reads the disk and then calls `on_stored`. `core` and `clock`
  /// must outlive Stop.
  void Start(ParameterServer& core, const Clock& clock, std::function<void()> on_stored);

  /// The core has something to do, or something has become due earlier.
  void Want();

  void Take(TakeSnapshot request);

  /// The store has begun or ended a call: what the thread does goes on.
  void GoOn() { turns_.fetch_add(2, std::memory_order_relaxed); }

  /// Of the thread, for a BusyMeter; one that reads the disk at the start has not begun.
  [[nodiscard]] std::uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }

  /// Does what waits, flushes once more and ends the thread. Idempotent.
  void Stop();

 private:
  struct Work {
    bool stop = false;
    std::deque<TakeSnapshot> snapshots = {};
  };

  absl::Status Run(ParameterServer& core,
                   const Clock& clock,
                   const std::function<void()>& on_stored);
  /// Waits for Stop, for `time` at most; returns true if it was called.
  bool StopsWithin(Clock::Duration time);
  Work Next(ParameterServer& core, const Clock& clock);
  absl::Status Do(const Work& work, ParameterServer& core, const Clock& clock);
  absl::Status TakeOne(const TakeSnapshot& request, ParameterServer& core);
  absl::Status Flush(ParameterServer& core);
  void CountScrubbed(const ParameterServer& core);
  void LogAlarm(const ParameterServer& core);

  // Constant after construction.
  service::ControllerLink& controller_;
  const metrics::Counter flushes_;
  const metrics::Counter flushed_bytes_;
  const metrics::Counter folded_;
  const metrics::Counter scrubbed_bytes_;
  const metrics::Counter damaged_;
  const metrics::Histogram flush_seconds_;
  const metrics::Histogram snapshot_seconds_;

  std::atomic<std::uint64_t> turns_ = 0;

  // Of the thread.
  std::string alarm_;        // that was logged
  ScrubTotals scrubbed_;     // that was counted
  std::size_t damages_ = 0;  // that were logged

  // Guarded.
  Mutex mutex_;
  CondVar changed_;
  Work work_ ABSL_GUARDED_BY(mutex_);
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;  // and not yet looked at

  std::jthread thread_;
};

}  // namespace adamant::parameter_server
