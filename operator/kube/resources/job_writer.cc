#include "operator/kube/resources/job_writer.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube/api/job_event.h"
#include "operator/kube/api/orphans.h"
#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {

JobWriter::JobWriter(
    const Client& client, JobIdentity job, EventRecorder& events, const Clock& clock, Refuse refuse)
    : client_(client),
      job_(std::move(job)),
      events_(events),
      clock_(clock),
      refuse_(std::move(refuse)) {}

void JobWriter::Note(const std::string& what, const absl::Status& status) {
  failed_.Note(what, status, clock_);
}

absl::StatusOr<std::string> JobWriter::CreateOnce(const Resource& resource, Json object) {
  const ObjectKey key = KeyOf(object);
  absl::StatusOr<Json> created = client_.Create(resource, std::move(object), {.strict = true});
  if (absl::IsAlreadyExists(created.status())) {
    created = client_.Get(resource, key);
    if (created.ok() && !IsOf(*created, job_)) {
      return MakeWay(client_, resource, *created, job_);
    }
  }
  ADAMANT_RETURN_IF_ERROR(created.status());
  return UidOf(*created);
}

absl::Status JobWriter::CreateClaim(const Json& claim) {
  return claim.is_null() ? absl::OkStatus() : CreateOnce(kPersistentVolumeClaims, claim).status();
}

absl::StatusOr<bool> JobWriter::RemovePod(const DeletePod& removal) {
  DeleteOptions options{.uid = removal.uid};
  if (removal.at_once) {
    options.grace_period = std::chrono::seconds(0);
  }
  const absl::Status status = client_.Delete(kPods, {job_.key.ns, removal.name}, options);
  if (absl::IsNotFound(status) || absl::IsAborted(status)) {  // gone, or another of that name
    return false;
  }
  Note("delete pod " + removal.name, status);
  ADAMANT_RETURN_IF_ERROR(status);
  return true;
}

absl::Status JobWriter::JudgeRefusal(const std::string& what, const absl::Status& why) {
  if (!absl::IsInvalidArgument(why)) {
    return why;
  }
  const std::string text = "the API refuses " + what + ": " + WordsOf(why);
  Record(true, "FailedCreate", text);
  refuse_(text);
  return absl::OkStatus();
}

void JobWriter::Record(bool warning, std::string reason, std::string message) const {
  events_.Record(EventOf(job_, warning, std::move(reason), std::move(message)));
}

}  // namespace adamant::kube
