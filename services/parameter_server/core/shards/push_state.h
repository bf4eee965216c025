#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::parameter_server {

/// Called once, with one answer per update of the push, in order; never under a lock.
using PushDone = std::function<void(std::vector<ShardAck>)>;

/// Gathers the answers to a push as its updates are settled, in any order and on any thread.
/// Threads: any.
class PushState {
 public:
  /// `updates` answers complete it.
  PushState(std::size_t updates, PushDone done) : done_(std::move(done)), acks_(updates) {
    unsettled_ = updates;
  }

  /// Each index once. May call `done`.
  void Settle(std::size_t index, const ShardAck& ack) {
    {
      const MutexLock lock(mutex_);
      acks_[index] = ack;
      if (--unsettled_ > 0) {
        return;
      }
    }
    done_(std::move(acks_));
  }

 private:
  const PushDone done_;

  // Guarded.
  Mutex mutex_;
  std::size_t unsettled_ ABSL_GUARDED_BY(mutex_);
  std::vector<ShardAck> acks_;  // guarded until the last is settled
};
using PushStatePtr = std::shared_ptr<PushState>;

}  // namespace adamant::parameter_server
