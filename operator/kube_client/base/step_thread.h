#pragma once

#include <functional>
#include <thread>

#include "operator/kube_client/base/sleeper.h"
#include "operator/kube_client/base/transport.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// A thread that calls `step` again and again, and waits in between as long as it says.
/// Threads: constructed, stopped and destroyed by one.
class StepThread {
 public:
  using StepFunction = std::function<Clock::Duration()>;

  /// `cancellation` is what ends a step that waits for the API. `sleeper` must outlive this.
  StepThread(StepFunction step, Cancellation cancellation, Sleeper& sleeper);
  ~StepThread() { Stop(); }
  StepThread(const StepThread&) = delete;
  StepThread& operator=(const StepThread&) = delete;

  /// Cancels, and waits for the step that runs. Idempotent.
  void Stop();

 private:
  const Cancellation cancellation_;
  std::jthread thread_;
};

}  // namespace adamant::kube
