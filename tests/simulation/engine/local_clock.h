#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "services/common/base/clock.h"
#include "tests/simulation/engine/scheduler.h"

namespace adamant::simulation {

/// The clock of one machine, which is fast or slow.
/// Threads: one.
class LocalClock final : public Clock {
 public:
  /// `drift`: nanoseconds a second that it is fast. `world` must outlive this.
  LocalClock(const Scheduler& world, std::int64_t drift)
      : world_(world), drift_(static_cast<double>(drift) * 1e-9) {}

  [[nodiscard]] TimePoint Now() const override {
    const auto passed = static_cast<double>(world_.Now().time_since_epoch().count());
    return world_.Now() + std::chrono::nanoseconds(std::llround(passed * drift_));
  }
  [[nodiscard]] std::chrono::system_clock::time_point WallNow() const override { return {}; }

  /// How long it is in the world until so much has passed here.
  [[nodiscard]] Duration ToWorld(Duration local) const {
    const double left = std::chrono::duration<double>(local).count();
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(left / (1 + drift_)));
  }

  /// Not before `local`, but soon after. `local` may be TimePoint::min() (at once), and not
  /// TimePoint::max() (never).
  [[nodiscard]] TimePoint ToWorld(TimePoint local) const {
    return world_.Now() + ToWorld(std::max(local, Now()) - Now()) + microseconds(10);
  }

 private:
  const Scheduler& world_;
  const double drift_;
};

}  // namespace adamant::simulation
