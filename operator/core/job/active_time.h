#pragma once

#include "operator/core/diagnosis/training_meter.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Counts in the state, in whole milliseconds, how long a job and its epoch have been active, and
/// how long training got on: while examples were counted, or an epoch's result or the model was
/// made. Threads: one thread at a time.
class ActiveTime {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  ActiveTime(JobState& state, const TrainingMeter& meter) : state_(state), meter_(meter) {}

  /// Time counts from now on.
  void Begin(TimePoint now) { counted_until_ = now; }

  /// Counts what has passed: for the job unless it has ended; for its epoch if that is `trained`.
  void Advance(TimePoint now, bool trained);

  [[nodiscard]] TimePoint counted_until() const { return counted_until_; }

 private:
  JobState& state_;
  const TrainingMeter& meter_;
  TimePoint counted_until_{};
};

}  // namespace adamant::controller
