#include "services/common/base/clock.h"

#include <ctime>

namespace adamant {

Clock::TimePoint SystemClock::Now() const {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return TimePoint(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

std::chrono::system_clock::time_point SystemClock::WallNow() const {
  return std::chrono::system_clock::now();
}

}  // namespace adamant
