#include "operator/cli/kubectl/cluster/outage.h"

#include "services/common/base/clock.h"

namespace adamant::kubectl {

void Outage::End() {
  answered_ = true;
  since_.reset();
}

absl::Status Outage::Wait(const absl::Status& error) {
  const Clock::TimePoint now = session_.clock.Now();
  since_ = since_.value_or(now);
  if (!answered_ || absl::IsNotFound(error) || now - *since_ >= kLongest) {
    return error;
  }
  return session_.sleeper.Sleep(kPause, session_.cancellation) ? absl::OkStatus()
                                                               : absl::CancelledError("stopped");
}

}  // namespace adamant::kubectl
