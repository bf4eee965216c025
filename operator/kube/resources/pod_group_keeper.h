#pragma once

#include <optional>

#include "absl/status/status.h"
#include "operator/kube/resources/job_writer.h"
#include "operator/kube/status/job_objects.h"
#include "services/common/base/clock.h"

namespace adamant::v1 {
class JobSpec;
}  // namespace adamant::v1

namespace adamant::kube {

/// Keeps the PodGroup of the coscheduling plugin that a job's pods are placed in
/// (spec.pods.scheduling.podGroup). Nobody tells of its changes, as not every cluster knows this
/// kind: it is looked at from time to time.
/// Threads: one.
class PodGroupKeeper {
 public:
  /// `writer` must outlive this.
  explicit PodGroupKeeper(JobWriter& writer) : writer_(writer) {}

  /// Makes the group what it should be, where that is due. `none_runs`: no process of the job does.
  absl::Status Keep(const v1::JobSpec& spec, const PodViews& pods, bool none_runs);

  /// The job needs none any more.
  void Stop() { next_look_.reset(); }

  /// Returns when the next look is due. One that is overdue, as the API is away, is made when that
  /// is tried again.
  [[nodiscard]] std::optional<Clock::TimePoint> NextLook() const;

 private:
  JobWriter& writer_;
  std::optional<Clock::TimePoint> next_look_;
};

}  // namespace adamant::kube
