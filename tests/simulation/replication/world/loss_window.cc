#include "tests/simulation/replication/world/loss_window.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace adamant::replication_simulation {
namespace {

/// For the threads of a server.
constexpr auto kSlack = milliseconds(50);

/// `pace` before `end`, not counting what is in the intervals or within `pace` behind them.
Clock::TimePoint Before(Clock::TimePoint end,
                        Clock::Duration pace,
                        std::vector<Interval> intervals) {
  std::ranges::sort(intervals, std::greater());
  for (const auto& [from, until] : intervals) {
    if (from <= end && until + pace >= end) {
      end = from;
    }
  }
  return end - pace;
}

}  // namespace

void LossWindow::Hears(const ps::ServerId& replica,
                       BucketId bucket,
                       Clock::TimePoint said,
                       Clock::TimePoint now) {
  std::vector<Knowledge>& known = known_[{replica, bucket}];
  if (known.empty() || said > known.back().said) {
    known.push_back({.since = now, .said = said});
  }
}

void LossWindow::ServesNoMore(const ps::ServerId& primary, BucketId bucket, Clock::TimePoint now) {
  std::vector<Knowledge>& known = known_[{primary, bucket}];
  if (!known.empty() && known.back().said == Clock::TimePoint::max()) {
    known.push_back({.since = now, .said = now});
  }
}

Clock::TimePoint LossWindow::SafeBefore(const ps::ServerId& replica,
                                        BucketId bucket,
                                        Clock::TimePoint end,
                                        const Disk& disk) const {
  const auto found = known_.find({replica, bucket});
  if (found == known_.end()) {
    return Clock::TimePoint::min();
  }
  const double rate = 1 + static_cast<double>(setup_.drift[replica.slot]) * 1e-9;
  const auto interval = std::chrono::duration_cast<Clock::Duration>(
      std::chrono::duration<double>(setup_.flush_interval) / rate);
  const Clock::TimePoint stored = Before(end, interval + kSlack, disk.hindrances());
  const auto after = std::ranges::upper_bound(found->second, stored, {}, &Knowledge::since);
  return after == found->second.begin() ? Clock::TimePoint::min()
                                        : std::min(std::prev(after)->said, stored);
}

}  // namespace adamant::replication_simulation
