#include "operator/kube/status/status_writer.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/schema/message_json.h"
#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr std::chrono::seconds kProgressInterval{10};
constexpr std::chrono::seconds kReportInterval{60};  // so that the API can bear many jobs that wait

// Without what changes all the time, by which nobody decides anything.
std::string DecisiveOf(v1::TrainingJobStatus status) {
  status.clear_examples();
  status.clear_examples_per_second();
  status.clear_training_loss();
  status.clear_active();
  status.clear_recovery();
  status.clear_last_report_time();
  return status.SerializeAsString();
}

// What tells nothing but that time has passed is left out.
std::string ProgressOf(v1::TrainingJobStatus status) {
  status.clear_active();
  status.clear_last_report_time();
  return status.SerializeAsString();
}

}  // namespace

v1::TrainingJobStatus EssentialStatus(const v1::TrainingJobStatus& status) {
  v1::TrainingJobStatus essential;
  essential.set_observed_generation(status.observed_generation());
  essential.set_phase(status.phase());
  if (status.has_message()) {
    essential.set_message(status.message());
  }
  *essential.mutable_conditions() = status.conditions();
  if (status.has_start_time()) {
    essential.set_start_time(status.start_time());
  }
  if (status.has_last_report_time()) {
    essential.set_last_report_time(status.last_report_time());
  }
  if (status.has_completion_time()) {
    essential.set_completion_time(status.completion_time());
  }
  if (status.has_security()) {
    *essential.mutable_security() = status.security();
  }
  return essential;
}

absl::StatusOr<std::string> ApplyStatus(const Client& client,
                                        const JobIdentity& job,
                                        const v1::TrainingJobStatus& status,
                                        const std::string& resource_version) {
  Json object = {
      {"metadata", {{"name", job.key.name}, {"namespace", job.key.ns}, {"uid", job.uid}}},
      {"status", MessageJson(status)}};
  if (!resource_version.empty()) {
    object["metadata"]["resourceVersion"] = resource_version;
  }
  ADAMANT_ASSIGN_OR_RETURN(
      const Json applied,
      client.Apply(kTrainingJobs,
                   std::move(object),
                   {.field_manager = kFieldManager, .force = true, .subresource = "status"}));
  return ResourceVersionOf(applied);
}

StatusWriter::StatusWriter(Client client, JobIdentity job)
    : client_(std::move(client)), job_(std::move(job)) {}

bool StatusWriter::IsDue(const v1::TrainingJobStatus& status, Clock::TimePoint now) {
  if (now < next_progress_) {
    return DecisiveOf(status) != written_decisive_;
  }
  next_progress_ = now + kProgressInterval;
  const bool reports = status.has_last_report_time() && now >= next_report_;
  if (ProgressOf(status) == written_ && !reports) {
    return false;
  }
  next_report_ = now + kReportInterval;
  return true;
}

absl::Status StatusWriter::Write(const v1::TrainingJobStatus& status, const Check& is_ours) {
  auto written = TryToWrite(status, is_ours);
  if (absl::IsInvalidArgument(written.status())) {
    const absl::Status why = written.status();
    written = TryToWrite(EssentialStatus(status), is_ours);
    if (written.ok()) {
      NoteRefusal(why);
    }
  }
  if (absl::IsNotFound(written.status())) {  // it is being deleted
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(written.status());
  resource_version_ = *std::move(written);
  written_ = ProgressOf(status);
  written_decisive_ = DecisiveOf(status);
  return absl::OkStatus();
}

absl::StatusOr<std::string> StatusWriter::TryToWrite(const v1::TrainingJobStatus& status,
                                                     const Check& is_ours) {
  auto written = ApplyStatus(client_, job_, status, resource_version_);
  if (!absl::IsAborted(written.status())) {
    return written;
  }
  ADAMANT_RETURN_IF_ERROR(Refresh());
  ADAMANT_RETURN_IF_ERROR(is_ours());
  written = ApplyStatus(client_, job_, status, resource_version_);
  if (absl::IsAborted(written.status())) {
    return absl::FailedPreconditionError("the status cannot be written while " +
                                         ToString(job_.key) + " keeps changing");
  }
  return written;
}

void StatusWriter::NoteRefusal(const absl::Status& why) {
  std::string words = WordsOf(why);
  if (words != refused_) {
    refused_ = words;
    refusal_ = std::move(words);
  }
}

absl::Status StatusWriter::Refresh() {
  const auto object = client_.Get(kTrainingJobs, job_.key);
  if (object.ok()) {
    resource_version_ = ResourceVersionOf(*object);
  }
  return absl::IsNotFound(object.status()) ? absl::OkStatus() : object.status();
}

}  // namespace adamant::kube
