#pragma once

#include "services/common/base/clock.h"

namespace adamant::bench {

/// The time that a training thread of a virtual worker sees. A step happens at once; for the thread
/// it lasts: the first look at the clock within TrainingThread::Advance is its beginning, each
/// later one its end. Threads: one.
class StepClock final : public Clock {
 public:
  /// `clock` must outlive this.
  explicit StepClock(const Clock& clock) : clock_(clock) {}

  /// What is done next takes until then, if it is a step.
  void Begin(TimePoint end) {
    end_ = end;
    begun_ = false;
  }

  [[nodiscard]] TimePoint Now() const override {
    const bool ended = begun_;
    begun_ = true;
    return ended ? end_ : clock_.Now();
  }

  [[nodiscard]] std::chrono::system_clock::time_point WallNow() const override {
    return clock_.WallNow();
  }

 private:
  const Clock& clock_;
  TimePoint end_{};
  mutable bool begun_ = false;
};

}  // namespace adamant::bench
