#include "operator/kube_client/base/step_thread.h"

#include <utility>

namespace adamant::kube {

StepThread::StepThread(StepFunction step, Cancellation cancellation, Sleeper& sleeper)
    : cancellation_(std::move(cancellation)), thread_([this, step = std::move(step), &sleeper] {
        while (!cancellation_.cancelled() && sleeper.Sleep(step(), cancellation_)) {
        }
      }) {}

void StepThread::Stop() {
  cancellation_.Cancel();
  if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace adamant::kube
