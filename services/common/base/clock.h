#pragma once

#include <chrono>

namespace adamant {

/// Source of time. Tests and the simulation put their own clock in its place.
/// Threads: all members may be called from any thread.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  virtual ~Clock() = default;

  /// Rises steadily, also while the machine sleeps; for durations, leases and timeouts.
  [[nodiscard]] virtual TimePoint Now() const = 0;

  /// Calendar time; only for logs and file names.
  [[nodiscard]] virtual std::chrono::system_clock::time_point WallNow() const = 0;
};

/// Input of a state machine: time has passed.
struct Tick {};

/// The clock of this machine (CLOCK_BOOTTIME).
class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint Now() const override;
  [[nodiscard]] std::chrono::system_clock::time_point WallNow() const override;
};

}  // namespace adamant
