#pragma once

#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Counts in the state, in whole milliseconds, how long a job and its epoch have been active.
/// Threads: one thread at a time.
class ActiveTime {
 public:
  using TimePoint = Clock::TimePoint;

  /// `state` must outlive this.
  explicit ActiveTime(JobState& state) : state_(state) {}

  /// Time counts from now on.
  void Begin(TimePoint now) { counted_until_ = now; }

  /// Counts what has passed: for the job unless it has ended; for its epoch if that is `trained`.
  void Advance(TimePoint now, bool trained);

  [[nodiscard]] TimePoint counted_until() const { return counted_until_; }

 private:
  JobState& state_;
  TimePoint counted_until_{};
};

}  // namespace adamant::controller
