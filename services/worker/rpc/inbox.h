#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <semaphore>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"

namespace adamant::worker {

/// Tasks that a loop is to do next, from any thread.
/// Threads: Post and Wake from any, Wake without a lock; the others on the loop's.
class Inbox {
 public:
  using Task = std::function<void()>;

  void Post(Task task) {
    {
      MutexLock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    Wake();
  }

  /// Makes the loop look around.
  void Wake() { wakes_.release(); }

  std::vector<Task> Take() {
    MutexLock lock(mutex_);
    return std::exchange(tasks_, {});
  }

  /// Returns when something was posted or woke the loop since the last call, or after `timeout`.
  void Wait(std::chrono::nanoseconds timeout) {
    if (wakes_.try_acquire_for(std::max(timeout, std::chrono::nanoseconds(0)))) {
      while (wakes_.try_acquire()) {
      }
    }
  }

 private:
  std::counting_semaphore<> wakes_{0};
  Mutex mutex_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::worker
