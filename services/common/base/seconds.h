#pragma once

#include <chrono>

#include "services/common/base/clock.h"

namespace adamant {

inline double Seconds(Clock::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace adamant
