#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "services/common/base/clock.h"

namespace adamant::bench {

/// A clock that jumps from event to event, and the events. Its unit is the step: what a training
/// thread takes for a batch. Events of the same time happen in the order in which they were added.
/// Threads: one.
class VirtualClock final : public Clock {
 public:
  /// What a step takes for those who count in seconds.
  static constexpr std::chrono::milliseconds kStep{10};

  [[nodiscard]] TimePoint Now() const override { return now_; }

  [[nodiscard]] std::chrono::system_clock::time_point WallNow() const override {
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(now_.time_since_epoch()));
  }

  /// Steps since the start.
  [[nodiscard]] double Steps() const {
    return std::chrono::duration<double>(now_.time_since_epoch()) / kStep;
  }

  static Duration DurationOf(double steps) {
    return std::chrono::duration_cast<Duration>(steps * std::chrono::duration<double>(kStep));
  }

  void At(TimePoint time, std::function<void()> event) {
    events_.emplace(std::max(time, now_), std::move(event));
  }

  /// Goes on to the next event, which happens; false when there is none.
  bool Next() {
    if (events_.empty()) {
      return false;
    }
    const auto next = events_.extract(events_.begin());
    now_ = next.key();
    next.mapped()();
    return true;
  }

  /// Drops all events, and what they hold.
  void Clear() { events_.clear(); }

 private:
  TimePoint now_{};
  std::multimap<TimePoint, std::function<void()>> events_;
};

}  // namespace adamant::bench
