#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "operator/core/job/job_report.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Tells in a job's reports how many buckets have too few live copies to take updates, so that
/// training waits for them, and since when; of a job that starts, for whose disks those wait that
/// come back from disk. Threads: one.
class BucketOutage {
 public:
  using WallTime = std::chrono::system_clock::time_point;

  static constexpr std::chrono::seconds kTimeout{3};  ///< promotions are quicker

  /// A report of now; its message, where it has none, says so. `wall`: now, as users read it.
  void TellIn(JobReport& report, Clock::TimePoint now, WallTime wall);

 private:
  struct Begin {
    Clock::TimePoint at{};
    WallTime wall{};
  };
  std::optional<Begin> begin_;  // none: all buckets take updates
};

}  // namespace adamant::controller
