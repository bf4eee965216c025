#include "operator/core/job/suspension.h"

namespace adamant::controller {

void Suspension::Request(const SuspendRequested& request, TimePoint now) {
  const bool is_stored = !settings_.only_checkpoints || !training_.begun() ||
                         state_.step == Step::kEvaluating || state_.step == Step::kExporting;
  if (is_stored || request.at_once) {
    return outcome_.End(Phase::kSuspended, request.reason);
  }
  if (!awaited_) {
    awaited_ = Awaited{.reason = request.reason,
                       .deadline = now + kLastCheckpoint,
                       .checkpoint = state_.checkpoint.snapshot};
    training_.RequestCheckpoint(now);
  }
}

void Suspension::OnTimer(TimePoint now) {
  if (awaited_ &&
      (now >= awaited_->deadline || state_.checkpoint.snapshot != awaited_->checkpoint)) {
    outcome_.End(Phase::kSuspended, awaited_->reason);
  }
}

std::optional<Suspension::TimePoint> Suspension::NextTimer() const {
  return awaited_ ? std::optional(awaited_->deadline) : std::nullopt;
}

}  // namespace adamant::controller
