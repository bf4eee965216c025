#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/job/job_body.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/resources.pb.h"

// What the API refuses a job's body, or leaves without an answer, and how its user hears of it.
namespace adamant::kube {

void JobBody::NoteWrite(const std::string& what, const absl::Status& status) {
  failed_writes_.Note(what, status, context_.clock);
}

// Where something had no answer: whether the API is away, or somebody holds up this one request.
void JobBody::AskWhetherItAnswers() {
  if (!failed_writes_.NeedsAnswer() || !status_pause_.Check(context_.clock.Now()).ok()) {
    return;
  }
  const absl::Status asked = client_.Get(kTrainingJobs, job_.key).status();
  status_pause_.Note(asked, context_.clock.Now());
  if (asked.ok() || IsAnswer(asked)) {
    failed_writes_.NoteAnswer(context_.clock.Now());
  }
}

// What has failed for a while reaches those who cannot read the operator's log.
void JobBody::TellFailures(v1::TrainingJobStatus& status) {
  AskWhetherItAnswers();
  const std::vector<FailedWrites::Failure> lasting = failed_writes_.Lasting(context_.clock.Now());
  AddFailures(lasting, *view_, Now(), status);
  for (const FailedWrites::Failure& failure : lasting) {
    if (failed_writes_.IsNews(failure)) {
      Record(true, failure.Reason(), failure.Text());
    }
  }
}

}  // namespace adamant::kube
