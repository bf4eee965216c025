#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "operator/kube/pods/reconcile.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Attempts of pods to write to a job's output: how the last one failed, and when the next is due,
/// later and later.
/// Threads: one.
class OutputAttempts {
 public:
  static constexpr std::chrono::milliseconds kFirstWait{2'000};
  static constexpr std::chrono::minutes kLastWait{2};
  static constexpr std::chrono::seconds kTimeout{60};  ///< until it is told that a pod waits

  /// `clock` must outlive this.
  explicit OutputAttempts(const Clock& clock) : clock_(clock) {}

  /// Looks at a pod that has not ended. Errors: FailedPrecondition when it waits for too long: it
  /// may get no node, and a node may not mount the claim.
  absl::Status CheckStarted(const ObservedPod& pod);

  /// A pod has ended.
  void OnEnded() { waits_since_.reset(); }

  /// A pod has failed. Returns how: "exited with code 1".
  std::string OnFailed(const ObservedPod& pod);

  /// Returns true if OnFailed was told of this pod last.
  [[nodiscard]] bool HasFailed(const ObservedPod& pod) const { return pod_uid_ == pod.uid; }

  /// Returns true if the next attempt is due.
  [[nodiscard]] bool IsDue() const { return clock_.Now() >= again_; }

  /// Returns when it is; nullopt: it is.
  [[nodiscard]] std::optional<Clock::TimePoint> Next() const;

  /// Returns why the last one failed, or waits; OK: neither.
  [[nodiscard]] const absl::Status& why() const { return why_; }
  void set_why(const absl::Status& why) { why_ = why; }

  /// Forgets the failures.
  void Clear();

 private:
  const Clock& clock_;
  std::string pod_uid_;  // of the one that failed last
  absl::Status why_;
  Clock::TimePoint again_{};
  std::chrono::milliseconds wait_{};
  std::optional<Clock::TimePoint> waits_since_;  // the pod of now has not started
};

}  // namespace adamant::kube
