#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "operator/core/state/actions.h"
#include "operator/job_series.h"
#include "operator/kube/job/job_observer.h"
#include "operator/kube_client/api/resource.h"
#include "operator/recovery_times.h"
#include "services/common/base/clock.h"

namespace adamant {

/// The jobs that this operator leads, or has led a moment ago, and which series they have. Those of
/// a job that is over stay for a while, for its last phase to be seen; jobs that stay for their
/// logs cost nothing. Threads: one at a time.
class LedJobs {
 public:
  /// Long enough for two scrapes.
  static constexpr std::chrono::seconds kStay{60};

  /// `clock` must outlive this.
  explicit LedJobs(const Clock& clock) : clock_(clock) {}

  /// Returns the series that the job has now; none for one that has been over for long.
  JobValues OnReport(const kube::ObjectKey& key, const kube::JobStanding& standing);

  void OnFailoverPhase(const kube::ObjectKey& key, const controller::FailoverPhase& phase) {
    jobs_[key].recoveries.OnPhase(phase);
  }
  void OnNote(const kube::ObjectKey& key, const controller::Note& note) {
    jobs_[key].recoveries.OnNote(note, clock_.Now());
  }

  void OnGone(const kube::ObjectKey& key);
  void Clear() { jobs_.clear(); }

  /// Returns the jobs that have been over for long, and have no series.
  std::vector<kube::ObjectKey> Expired();

 private:
  struct Job {
    std::uint64_t uid = 0;  // 0: not known yet
    RecoveryTimes recoveries{};
    std::optional<Clock::TimePoint> ends{};  // its series do
    bool gone = false;
  };

  const Clock& clock_;
  std::map<kube::ObjectKey, Job> jobs_;
};

}  // namespace adamant
