#pragma once

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "operator/core/training/snapshot_coordinator.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Has the model of the evaluated snapshot written, once all primaries serve it, and again where a
/// server could not be read.
/// Threads: one thread at a time.
class ExportCoordinator {
 public:
  using TimePoint = Clock::TimePoint;

  /// Wait before an export that could not read a server is tried again.
  static constexpr std::chrono::milliseconds kRetry{2'000};

  /// The arguments must outlive this.
  ExportCoordinator(JobState& state, Outbox& outbox, SnapshotCoordinator& snapshots)
      : state_(state), outbox_(outbox), snapshots_(snapshots) {}

  /// Begins the step: the job has ended its last epoch, now or under an earlier controller.
  void Begin(TimePoint now);

  /// Tries no more, as the job goes back.
  void Abandon() { retry_.reset(); }

  /// Notes that primaries are still to store the model: that may be why an export under way cannot
  /// read it.
  void OnDisturbed() { disturbed_ = true; }

  /// Returns how the export that is waited for has ended; nullopt: it was another one, or it is
  /// tried again.
  [[nodiscard]] std::optional<absl::Status> OnExported(const Exported& exported, TimePoint now);

  void OnTimer(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> NextTimer() const { return retry_; }

 private:
  void Start(TimePoint now);

  JobState& state_;
  Outbox& outbox_;
  SnapshotCoordinator& snapshots_;
  std::optional<TimePoint> retry_;
  bool disturbed_ = false;  // since it was started
};

}  // namespace adamant::controller
