#pragma once

#include <algorithm>
#include <map>

#include "services/common/base/mutex.h"
#include "services/worker/core/intake/intake.h"

namespace adamant::worker {

/// Data servers that have nothing left to dispatch for now, and hence Intake::drained.
/// Threads: any.
class DrainedServers {
 public:
  explicit DrainedServers(Intake& intake) : intake_(intake) {}  // must outlive this

  /// Counts the server in. Call before batches that it dispatches are queued, and after those that
  /// it dispatched are.
  void Set(ServerSlot server, bool drained) {
    MutexLock lock(mutex_);
    servers_[server] = drained;
    Publish();
  }

  /// The server is no longer one of ours.
  void Remove(ServerSlot server) {
    MutexLock lock(mutex_);
    servers_.erase(server);
    Publish();
  }

 private:
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool all = std::all_of(
        servers_.begin(), servers_.end(), [](const auto& server) { return server.second; });
    intake_.SetDrained(all);
  }

  Intake& intake_;
  Mutex mutex_;
  std::map<ServerSlot, bool> servers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::worker
