#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "services/common/base/clock.h"

namespace adamant::worker {

/// Times at which servers are asked to write to disk what a worker retains: at once, then after
/// 25 ms, doubling, at most 400 ms, until something is released.
/// Threads: one at a time.
class FlushSchedule {
 public:
  void Want(bool wanted) {
    if (wanted && !wanted_) {
      at_ = {};
      requests_ = 0;
    }
    wanted_ = wanted;
  }

  [[nodiscard]] bool wanted() const { return wanted_; }
  [[nodiscard]] bool Due(Clock::TimePoint now) const { return now >= at_; }

  /// Servers were asked.
  void OnAsked(Clock::TimePoint now) {
    at_ = now + std::min(kFirstWait * (1 << std::min(requests_++, kMostDoublings)), kLongestWait);
  }

  /// The servers have written something, and pushes are released.
  void OnReleased() { requests_ = 0; }

  /// Returns when they are asked next.
  [[nodiscard]] Clock::TimePoint at() const { return at_; }

 private:
  static constexpr std::chrono::milliseconds kFirstWait{25};
  static constexpr std::chrono::milliseconds kLongestWait{400};
  static constexpr std::uint32_t kMostDoublings = 4;

  bool wanted_ = false;
  std::uint32_t requests_ = 0;  // since something was released
  Clock::TimePoint at_{};
};

}  // namespace adamant::worker
