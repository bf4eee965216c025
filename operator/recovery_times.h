#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "operator/core/job/job_report.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "services/common/base/clock.h"

namespace adamant {

/// Counts the phases of a job's recoveries, and the time that they took: of buckets as their
/// controller tells of them; of processes from when one was lost to when the next one of its slot
/// has joined.
/// Threads: one.
class RecoveryTimes {
 public:
  struct Sum {
    double count = 0;
    double seconds = 0;

    bool operator==(const Sum&) const = default;
  };

  RecoveryTimes();

  void OnPhase(const controller::FailoverPhase& phase);

  /// One that is lost again before it has joined has been missing since the first time.
  void OnNote(const controller::Note& note, Clock::TimePoint now);

  /// Forgets what was lost in slots that are not among these: they wait for nobody any more.
  void KeepSlots(const std::vector<controller::JobReport::MemberReport>& members);

  /// The job has ended: nobody is missing.
  void ForgetLost() { lost_.clear(); }

  /// By phase: "detect", "replace", "reconcile", "catch_up", "restart"; all of them.
  [[nodiscard]] const std::map<std::string_view, Sum>& sums() const { return sums_; }

 private:
  void Add(std::string_view phase, double seconds);

  std::map<std::string_view, Sum> sums_;
  std::map<controller::SlotId, Clock::TimePoint> lost_;  // when
};

}  // namespace adamant
