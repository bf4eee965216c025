#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "operator/kube/api/failed_writes.h"
#include "operator/kube/job/job_reconciler.h"
#include "operator/kube/status/job_view.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// The jobs that one leader leads: the reconcilers of those that run, and what is done about those
/// that are not valid or have ended. Threads: any; each job by one at a time.
class JobReconcilers {
 public:
  /// `context` must outlive this. `wake` is called, on any thread, with the key of a job for which
  /// there is something to do.
  JobReconcilers(const ReconcilerContext& context,
                 std::function<void(const std::string& key)> wake);

  /// Does what is to be done for a job, given it and its objects as they were last seen. Returns
  /// when to be called again though nothing has happened.
  /// Errors: those of the API: to be called again after a while. Aborted: another controller leads
  /// this job; what this one thought of it is forgotten.
  absl::StatusOr<Clock::TimePoint> Work(const std::shared_ptr<const JobView>& view,
                                        const JobObjects& seen);

  /// The job is not led any more.
  void Drop(const ObjectKey& key);

 private:
  std::shared_ptr<JobReconciler> ReconcilerOf(const std::shared_ptr<const JobView>& view,
                                              const PodViews& pods);
  absl::StatusOr<Clock::TimePoint> WorkOn(const std::shared_ptr<const JobView>& view,
                                          const JobObjects& seen);
  bool NeedsReconciler(const JobView& view, const PodViews& pods) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const JobView& view);
  absl::StatusOr<Clock::TimePoint> Expire(const JobView& view);
  absl::Status RejectInvalid(const JobView& view);
  void NoteWrite(const JobView& view, const std::string& what, const absl::Status& status);

  const ReconcilerContext& context_;
  const std::function<void(const std::string&)> wake_;

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<JobReconciler>> reconcilers_
      ABSL_GUARDED_BY(mutex_);  // by job key
  // Those that have ended and left nothing to be done by this spec, by job key.
  struct Finished {
    std::string uid;
    std::int64_t generation;
    bool operator==(const Finished&) const = default;
  };
  std::map<std::string, Finished> finished_ ABSL_GUARDED_BY(mutex_);
  // What is refused of jobs that have no reconciler, by job key.
  std::map<std::string, FailedWrites> failed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::kube
