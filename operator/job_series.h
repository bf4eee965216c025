#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string_view>

#include "operator/kube/job/job_observer.h"
#include "operator/recovery_times.h"

namespace adamant {

/// Measurements of a job. Names and meanings: docs/metrics.md.
enum class JobMetric : std::uint8_t {
  kPhase,
  kEpoch,
  kEpochs,
  kEpochExamples,
  kExamplesPerEpoch,
  kExamplesPerSecond,
  kTrainingLoss,
  kAccuracy,
  kGoodput,
  kAttempt,
  kRestartsLeft,
  kBuckets,
  kProcesses,
  kLossWindow,
  // Counters.
  kRestarts,
  kRecoveries,
  kRecoverySeconds,
  kRolledBackUpdates,
  kBucketRestores,
};

inline constexpr bool IsCounter(JobMetric metric) { return metric >= JobMetric::kRestarts; }

/// One series of a job: what is measured, and the values of its labels beside those of the job, in
/// the order of docs/metrics.md. The views are of literals: each report makes them all.
struct JobSeries {
  JobMetric metric{};
  std::string_view first{};
  std::string_view second{};

  auto operator<=>(const JobSeries&) const = default;
};

/// All series that a job has at a time.
using JobValues = std::map<JobSeries, double>;

/// Returns the series of a job that stands so. What is not known is not there: 0 would be drawn,
/// and averaged. Counters have all their labels from the start.
JobValues ValuesOf(const kube::JobStanding& standing, const RecoveryTimes& recoveries);

}  // namespace adamant
