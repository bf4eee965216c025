#include "operator/kube_client/base/sleeper.h"

#include "services/common/base/mutex.h"

namespace adamant::kube {

bool SystemSleeper::Sleep(Clock::Duration time, const Cancellation& cancellation) {
  Mutex mutex;
  CondVar changed;
  bool cancelled = false;
  const auto guard = cancellation.OnCancel([&] {
    const MutexLock lock(mutex);
    cancelled = true;
    changed.NotifyAll();
  });
  const Clock::TimePoint end = std::chrono::steady_clock::now() + time;
  const MutexLock lock(mutex);
  while (!cancelled) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= Clock::Duration::zero()) {
      return true;
    }
    changed.WaitFor(mutex, left);
  }
  return false;
}

}  // namespace adamant::kube
