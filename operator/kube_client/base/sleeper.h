#pragma once

#include "operator/kube_client/base/transport.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Means for threads to wait for a time to pass. Tests put one in its place that moves a FakeClock
/// on. Threads: any.
class Sleeper {
 public:
  virtual ~Sleeper() = default;

  /// Waits for `time`, or until cancelled. Returns false if cancelled.
  virtual bool Sleep(Clock::Duration time, const Cancellation& cancellation) = 0;
};

/// Waits in real time.
class SystemSleeper final : public Sleeper {
 public:
  bool Sleep(Clock::Duration time, const Cancellation& cancellation) override;
};

}  // namespace adamant::kube
