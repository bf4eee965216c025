#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "operator/kube/api/api_pause.h"
#include "operator/kube/resources/job_writer.h"
#include "operator/kube/status/job_view.h"
#include "operator/kube/status/status_writer.h"
#include "services/common/base/clock.h"

namespace adamant::v1 {
class TrainingJobStatus;
}  // namespace adamant::v1

namespace adamant::kube {

/// Writes a job's status, with what the API does not let its operator write.
/// Threads: one.
class StatusReporter {
 public:
  /// `writer` must outlive this.
  explicit StatusReporter(JobWriter& writer)
      : writer_(writer), status_writer_(writer.client(), writer.job()) {}

  /// The job as it was seen before its state was read.
  void StartFrom(std::string resource_version) {
    status_writer_.StartFrom(std::move(resource_version));
  }

  /// Says in `status`, and once in an event, what has failed for a while: so that it reaches those
  /// who cannot read the operator's log. Where something had no answer, asks whether the API is
  /// away, or somebody holds up this one request.
  void TellFailures(const JobView& view, v1::TrainingJobStatus& status);

  /// Writes the status where that is due. Errors: those of StatusWriter::Write; Aborted: another
  /// controller leads the job.
  absl::Status Write(const v1::TrainingJobStatus& status, const StatusWriter::Check& leads);

  /// Returns when what changes all the time is written next.
  [[nodiscard]] Clock::TimePoint next_progress() const { return status_writer_.next_progress(); }

 private:
  void AskWhetherItAnswers();

  JobWriter& writer_;
  StatusWriter status_writer_;
  ApiPause pause_;  // of its own: somebody may hold up what is stored, and that is to be told
};

}  // namespace adamant::kube
