#include "operator/kube/resources/output_attempts.h"

#include <algorithm>

namespace adamant::kube {

absl::Status OutputAttempts::CheckStarted(const ObservedPod& pod) {
  const Clock::TimePoint now = clock_.Now();
  if (pod.state != ObservedPod::State::kPending) {
    waits_since_.reset();
  } else if (!waits_since_) {
    waits_since_ = now;
  } else if (now - *waits_since_ >= kTimeout) {
    return absl::FailedPreconditionError("its pod " + pod.name + " has not started for " +
                                         std::to_string(kTimeout.count()) +
                                         " s; `kubectl adamant explain` says why");
  }
  return absl::OkStatus();
}

std::string OutputAttempts::OnFailed(const ObservedPod& pod) {
  std::string how = pod.how.empty() ? "is gone with its node" : pod.how;
  pod_uid_ = pod.uid;
  why_ = absl::FailedPreconditionError("its pod " + pod.name + " " + how);
  wait_ = std::clamp(2 * wait_, kFirstWait, std::chrono::milliseconds(kLastWait));
  again_ = clock_.Now() + wait_;
  return how;
}

std::optional<Clock::TimePoint> OutputAttempts::Next() const {
  return IsDue() ? std::nullopt : std::optional(again_);
}

void OutputAttempts::Clear() {
  pod_uid_.clear();
  why_ = absl::OkStatus();
  again_ = {};
  wait_ = {};
}

}  // namespace adamant::kube
