#pragma once

#include <cstdint>
#include <map>

#include "operator/core/messages.h"

namespace adamant::v1 {
class TrainingJobStatus;
}  // namespace adamant::v1

namespace adamant::kube {

/// Counts the restarts of a job's processes over its whole life, where its controller counts those
/// since it was resumed. What was counted is in the status, which the next leader goes on from.
/// Threads: one.
class RestartCounter {
 public:
  /// `told`: the job's status; `counted`: what its controller has counted by then.
  void StartFrom(const v1::TrainingJobStatus& told, std::uint32_t counted);

  /// A process of this role starts again, at whatever cost.
  void OnRestart(controller::Role role) { ++by_role_[role]; }

  /// Writes `restarts` of the job and of each role. `counted`: JobReport::restarts.
  void Fill(std::uint32_t counted, v1::TrainingJobStatus& status);

 private:
  std::map<controller::Role, std::int64_t> by_role_;
  std::int64_t before_ = 0;    // what the controller does not count any more
  std::uint32_t counted_ = 0;  // by it, when it was last looked at
};

}  // namespace adamant::kube
