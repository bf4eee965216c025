#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "services/common/base/mutex.h"

namespace adamant::parameter_server {

/// An answer that comes later, from another thread, or never.
/// Threads: one waits, any sets.
template <class Answer>
class Pending {
 public:
  /// Called at most once.
  void Set(Answer answer) {
    const MutexLock lock(mutex_);
    answer_ = std::move(answer);
    changed_.NotifyAll();
  }

  /// Waits for the answer; nothing once `give_up` says so, which is asked now and then.
  std::optional<Answer> Wait(const std::function<bool()>& give_up) {
    const MutexLock lock(mutex_);
    while (!answer_.has_value() && !give_up()) {
      changed_.WaitFor(mutex_, kAskInterval);
    }
    return std::move(answer_);
  }

 private:
  // A synchronous call of gRPC cannot be told that its client is gone: it has to ask.
  static constexpr std::chrono::milliseconds kAskInterval{100};

  Mutex mutex_;
  CondVar changed_;
  std::optional<Answer> answer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::parameter_server
