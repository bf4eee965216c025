#pragma once

#include <string>
#include <utility>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube_client/api/event_correlator.h"

// Events about jobs.
namespace adamant::kube {

/// Reason of the event about a status that was written in part: the API refused the rest.
inline constexpr char kStatusRefused[] = "StatusRefused";

inline std::string RefusedStatusText(const std::string& why) {
  return "the API refuses part of the job's status, which is written without it: " + why;
}

inline Event EventOf(const JobIdentity& job, bool warning, std::string reason, std::string text) {
  return {.object = {.api_version = kTrainingJobs.api_version(),
                     .kind = std::string(kTrainingJobs.kind),
                     .key = job.key,
                     .uid = job.uid},
          .warning = warning,
          .reason = std::move(reason),
          .message = std::move(text)};
}

}  // namespace adamant::kube
