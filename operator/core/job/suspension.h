#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "operator/core/state/actions.h"
#include "operator/core/state/outcome.h"
#include "operator/core/state/state.h"
#include "operator/core/training/training_run.h"

namespace adamant::controller {

/// Suspends a job that its user wants to stop for a while. Where only checkpoints are stored, it
/// takes one first: all that was trained since the last would be gone.
/// Threads: one thread at a time.
class Suspension {
 public:
  using TimePoint = Clock::TimePoint;

  /// The last checkpoint has this time.
  static constexpr std::chrono::milliseconds kLastCheckpoint{1'500};

  /// The arguments must outlive this.
  Suspension(const JobSettings& settings,
             const JobState& state,
             TrainingRun& training,
             Outcome& outcome)
      : settings_(settings), state_(state), training_(training), outcome_(outcome) {}

  void Request(const SuspendRequested& request, TimePoint now);

  /// Suspends the job once it has its checkpoint, or at the end of the time for it.
  void OnTimer(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> NextTimer() const;

 private:
  struct Awaited {
    std::string reason;
    TimePoint deadline{};
    std::uint64_t checkpoint = 0;  // the newest when it was asked for
  };

  const JobSettings& settings_;
  const JobState& state_;
  TrainingRun& training_;
  Outcome& outcome_;
  std::optional<Awaited> awaited_;  // a checkpoint
};

}  // namespace adamant::controller
