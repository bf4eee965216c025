#include "operator/led_jobs.h"

#include "proto/adamant/v1/resources.pb.h"

namespace adamant {
namespace {

// It has ended, or is suspended.
bool IsOver(const v1::TrainingJobStatus& status) {
  return status.phase() == v1::TrainingJobStatus::PHASE_SUCCEEDED ||
         status.phase() == v1::TrainingJobStatus::PHASE_FAILED ||
         status.phase() == v1::TrainingJobStatus::PHASE_SUSPENDED;
}

}  // namespace

JobValues LedJobs::OnReport(const kube::ObjectKey& key, const kube::JobStanding& standing) {
  Job& job = jobs_[key];
  if (job.uid != 0 && job.uid != standing.state.job_uid) {
    job = {};  // another one of that name
  }
  job.uid = standing.state.job_uid;
  job.gone = false;
  if (!IsOver(standing.status)) {
    job.ends.reset();
    job.recoveries.KeepSlots(standing.report.members);
  } else {
    job.ends = job.ends.value_or(clock_.Now() + kStay);
    job.recoveries.ForgetLost();
  }
  return job.ends && *job.ends <= clock_.Now() ? JobValues() : ValuesOf(standing, job.recoveries);
}

void LedJobs::OnGone(const kube::ObjectKey& key) {
  if (const auto job = jobs_.find(key); job != jobs_.end()) {
    job->second.gone = true;
    job->second.ends = job->second.ends.value_or(clock_.Now() + kStay);
  }
}

std::vector<kube::ObjectKey> LedJobs::Expired() {
  std::vector<kube::ObjectKey> expired;
  for (const auto& [key, job] : jobs_) {
    if (job.ends && *job.ends <= clock_.Now()) {
      expired.push_back(key);
    }
  }
  std::erase_if(jobs_, [&](const auto& job) {
    return job.second.gone && job.second.ends && *job.second.ends <= clock_.Now();
  });
  return expired;
}

}  // namespace adamant
