#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "operator/core/state/actions.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// Takes a job's events from the streams' threads; outlives its reconciler where a stream does.
/// Threads: any.
class JobInbox {
 public:
  explicit JobInbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Push(controller::Event event) {
    {
      const MutexLock lock(mutex_);
      if (closed_) {
        return;
      }
      events_.push_back(std::move(event));
    }
    wake_();
  }

  std::vector<controller::Event> TakeAll() {
    const MutexLock lock(mutex_);
    return std::exchange(events_, {});
  }

  void Close() {
    const MutexLock lock(mutex_);
    closed_ = true;
  }

 private:
  const std::function<void()> wake_;
  Mutex mutex_;
  std::vector<controller::Event> events_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace adamant::kube
