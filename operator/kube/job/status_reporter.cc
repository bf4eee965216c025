#include "operator/kube/job/status_reporter.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/api/job_event.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/base/time.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {

void StatusReporter::AskWhetherItAnswers() {
  const Clock& clock = writer_.clock();
  if (!writer_.failed().NeedsAnswer() || !pause_.Check(clock.Now()).ok()) {
    return;
  }
  const absl::Status asked = writer_.client().Get(kTrainingJobs, writer_.job().key).status();
  pause_.Note(asked, clock.Now());
  if (asked.ok() || IsAnswer(asked)) {
    writer_.failed().NoteAnswer(clock.Now());
  }
}

void StatusReporter::TellFailures(const JobView& view, v1::TrainingJobStatus& status) {
  AskWhetherItAnswers();
  const Clock& clock = writer_.clock();
  const std::vector<FailedWrites::Failure> lasting = writer_.failed().Lasting(clock.Now());
  AddFailures(lasting, view, FormatTime(clock.WallNow()), status);
  for (const FailedWrites::Failure& failure : lasting) {
    if (writer_.failed().IsNews(failure)) {
      writer_.Record(true, failure.Reason(), failure.Text());
    }
  }
}

absl::Status StatusReporter::Write(const v1::TrainingJobStatus& status,
                                   const StatusWriter::Check& leads) {
  const Clock& clock = writer_.clock();
  const Clock::TimePoint now = clock.Now();
  if (!status_writer_.IsDue(status, now)) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(pause_.Check(now));
  const absl::Status written = status_writer_.Write(status, leads);
  pause_.Note(written, clock.Now());
  if (!absl::IsAborted(written)) {
    writer_.Note("update the status", written);
  }
  if (const auto refusal = status_writer_.TakeRefusal()) {
    writer_.Record(true, kStatusRefused, RefusedStatusText(*refusal));
  }
  return written;
}

}  // namespace adamant::kube
