#include "operator/kube/job/job_security.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/schema/job_object.h"
#include "operator/kube/status/job_status.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

using control::StreamSecurity;
using v1::SecurityStatus;

SecurityStatus::Mode ModeOf(StreamSecurity streams) {
  return streams == StreamSecurity::kTls ? SecurityStatus::MODE_T_L_S : SecurityStatus::MODE_PLAIN;
}

bool IsDecided(const v1::TrainingJobStatus& status) {
  return status.security().mode() != SecurityStatus::MODE_UNSPECIFIED;
}

}  // namespace

JobSecurity::JobSecurity(Client client, JobIdentity job, const PodSettings& settings)
    : client_(std::move(client)), job_(std::move(job)), settings_(settings), pods_(settings) {
  pods_.security.reset();
}

absl::Status JobSecurity::Begin(const v1::TrainingJobStatus& status,
                                const std::function<absl::Status()>& store) {
  if (IsDecided(status)) {
    return Resume(status);
  }
  if (!settings_.security) {
    Set(StreamSecurity::kPlain);
    return absl::OkStatus();  // a status that says nothing means the same
  }
  ADAMANT_RETURN_IF_ERROR(CheckCanUseTls());  // before anything is told of it
  Set(StreamSecurity::kTls);
  ADAMANT_RETURN_IF_ERROR(store());
  ADAMANT_ASSIGN_OR_RETURN(const v1::TrainingJobStatus stored, Read());
  return stored.security().mode() == SecurityStatus::MODE_T_L_S
             ? absl::OkStatus()
             : absl::FailedPreconditionError(
                   "the API does not keep status.security of jobs: bring the custom resources to "
                   "the operators' version");
}

absl::Status JobSecurity::Resume(v1::TrainingJobStatus status) {
  if (!IsDecided(status)) {
    ADAMANT_ASSIGN_OR_RETURN(status, Read());
  }
  Set(status.security().mode() == SecurityStatus::MODE_T_L_S ? StreamSecurity::kTls
                                                             : StreamSecurity::kPlain);
  return streams() == StreamSecurity::kPlain || status.has_completion_time() ? absl::OkStatus()
                                                                             : CheckCanUseTls();
}

absl::StatusOr<v1::TrainingJobStatus> JobSecurity::Read() const {
  ADAMANT_ASSIGN_OR_RETURN(const Json object, client_.Get(kTrainingJobs, job_.key));
  if (UidOf(object) != job_.uid) {
    return absl::UnavailableError(ToString(job_.key) + " was deleted");
  }
  v1::TrainingJobStatus status;
  ReadStatus(object, status).IgnoreError();  // what cannot be read was not written by us
  return status;
}

void JobSecurity::Set(StreamSecurity streams) {
  streams_ = streams;
  pods_.security = streams == StreamSecurity::kTls ? settings_.security : std::nullopt;
}

absl::Status JobSecurity::CheckCanUseTls() const {
  if (!settings_.security) {
    return absl::FailedPreconditionError(
        "the job's processes use TLS, and the operators run without: start them with --tls=on");
  }
  return settings_.security->roots().empty()
             ? absl::FailedPreconditionError(
                   "the operators' certificate authority is not there yet: their log says why")
             : absl::OkStatus();
}

void JobSecurity::Tell(const JobView& view,
                       const std::string& now,
                       v1::TrainingJobStatus& status) const {
  if (streams_) {
    status.mutable_security()->set_mode(ModeOf(*streams_));
  }
  SetSecured(settings_.security.has_value(), view, now, status);
}

}  // namespace adamant::kube
