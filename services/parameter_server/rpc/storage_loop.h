#pragma once

#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/metrics/metrics.h"
#include "services/common/service/service.h"
#include "services/parameter_server/core/parameter_server.h"

namespace adamant::parameter_server {

/// The thread that waits for the disk: prepares buckets, takes snapshots and flushes when it is
/// time, and answers the controller.
/// Threads: any.
class StorageLoop {
 public:
  struct Snapshot {
    std::uint64_t id = 0;
    std::uint64_t keep_from = 0;
    std::vector<std::uint64_t> keep = {};
  };

  /// The link and the registry must outlive this.
  StorageLoop(service::ControllerLink& controller, metrics::Registry& registry);
  ~StorageLoop();

  /// Starts the thread. `core` and `clock` must outlive Stop.
  void Start(ParameterServer& core, const Clock& clock);

  /// The core has a new map: do what it asks for and report.
  void Prepare();

  void Take(Snapshot snapshot);

  /// The next flush may have become due earlier.
  void DueChanged();

  /// Flushes once more and ends the thread. Idempotent.
  void Stop();

 private:
  struct Work {
    bool stop = false;
    bool prepare = false;
    std::deque<Snapshot> snapshots = {};
  };

  void Run(ParameterServer& core, const Clock& clock);
  Work Next(ParameterServer& core, const Clock& clock);
  absl::Status Do(const Work& work, ParameterServer& core, const Clock& clock);
  void Report(const ParameterServer& core);
  absl::Status TakeOne(const Snapshot& snapshot, ParameterServer& core);
  absl::Status Flush(ParameterServer& core);

  // Constant after construction.
  service::ControllerLink& controller_;
  const metrics::Counter flushes_;
  const metrics::Counter flushed_bytes_;
  const metrics::Counter folded_;
  const metrics::Histogram flush_seconds_;
  const metrics::Histogram snapshot_seconds_;

  // Guarded.
  Mutex mutex_;
  CondVar changed_;
  Work work_ ABSL_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace adamant::parameter_server
