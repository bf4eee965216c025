#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube_client/api/resource.h"

namespace adamant::v1 {
class TrainingJob;
class TrainingJobStatus;
}  // namespace adamant::v1

namespace adamant::kube {

/// Part of a TrainingJob that an informer keeps.
struct JobView {
  ObjectKey key;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  bool deleting = false;
  std::shared_ptr<const v1::TrainingJob> job;  ///< as it is to run; null: it never was valid
  std::string problems;                        ///< what is wrong with it, a line each
  bool names_copies = false;                   ///< its spec does; else they are a default
  std::shared_ptr<const v1::TrainingJobStatus> status;
  std::string checkpoint_request;  ///< kCheckpointAnnotation; empty: none was ever wanted
};

/// Returns true if the job, once ended, leaves its pods as they are, also those that still run.
bool LeavesPods(const v1::TrainingJob& job);

/// The view of a job that was begun when `copies` was 1 where the spec names none.
std::shared_ptr<const JobView> WithOldDefaults(std::shared_ptr<const JobView> view);

std::shared_ptr<const JobView> ParseJobObject(const nlohmann::json& object);

}  // namespace adamant::kube
