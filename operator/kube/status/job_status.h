#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/core/job/job_controller.h"
#include "operator/core/state/state.h"
#include "operator/kube/api/failed_writes.h"
#include "operator/kube/status/job_objects.h"
#include "operator/kube/status/job_view.h"

namespace adamant::kube {

inline constexpr char kSuspendedByUser[] = "spec.runPolicy.suspend is true";

/// Returns the phase for people: "Running"; "New" where nobody has told one.
std::string_view PhaseText(const v1::TrainingJobStatus& status);

/// The status of a job as its controller reports it and its pods show. `now`: as the API writes
/// times. What is to stay as it was (times of transitions, the start) comes from the view.
v1::TrainingJobStatus StatusOf(const controller::JobReport& report,
                               const PodViews& pods,
                               const JobView& view,
                               const std::string& now);

/// Adds what the job's controller remembers beside its report: promotions, and for how long it ran.
void AddHistory(const controller::JobState& state,
                const controller::JobReport& report,
                v1::TrainingJobStatus& status);

/// The status of a job that is not to run now, and of which nothing runs.
v1::TrainingJobStatus SuspendedStatus(const JobView& view, const std::string& now);

/// The status of a job whose state cannot be read or begun now: as it was told last, without the
/// message of a job that goes on.
v1::TrainingJobStatus WaitingStatus(const JobView& view, const std::string& now);

/// Adds condition WriteFailure where there are failures, and says the first in the message: before
/// all else while the job goes on, else if there is no other.
void AddFailures(const std::vector<FailedWrites::Failure>& failures,
                 const JobView& view,
                 const std::string& now,
                 v1::TrainingJobStatus& status);

/// Returns what condition OutputWritable=True says of the claim of `uid` that the job's model is to
/// be written to. One that was written to is not tried again while it is the same.
std::string WrittenOutputText(const JobView& view, const std::string& uid);

/// Returns what that condition says in a status; "" if it has none.
std::string WrittenOutputText(const v1::TrainingJobStatus& status);

/// Adds that condition unless `text` is empty.
void AddWrittenOutput(const std::string& text,
                      const JobView& view,
                      const std::string& now,
                      v1::TrainingJobStatus& status);

/// Sets condition Secured to what status.security says; without that there is none.
/// `jobs_begin_with_tls`: operators run with TLS, whatever this job does.
void SetSecured(bool jobs_begin_with_tls,
                const JobView& view,
                const std::string& now,
                v1::TrainingJobStatus& status);

/// The status of a job that has failed because nobody knows any more how it stood.
v1::TrainingJobStatus LostStatus(const JobView& view,
                                 const std::string& why,
                                 const std::string& now);

/// The status of a job that cannot run, with condition Valid=False.
v1::TrainingJobStatus InvalidStatus(const JobView& view, const std::string& now);

}  // namespace adamant::kube
