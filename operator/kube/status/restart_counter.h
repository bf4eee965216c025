#pragma once

#include <cstdint>
#include <map>

#include "operator/core/state/failure_rules.h"
#include "operator/core/state/messages.h"

namespace adamant::v1 {
class RoleStatus;
class TrainingJobStatus;
}  // namespace adamant::v1

namespace adamant::kube {

/// Returns how often processes of a role were started again after a loss with this cause.
std::int64_t RestartsOf(const v1::RoleStatus& told, controller::LossReason cause);

/// Counts the restarts of a job's processes over its whole life, where its controller counts those
/// since it was resumed. What was counted is in the status, which the next leader goes on from.
/// Threads: one.
class RestartCounter {
 public:
  /// `told`: the job's status; `counted`: what its controller has counted by then.
  void StartFrom(const v1::TrainingJobStatus& told, std::uint32_t counted);

  /// A process of this role starts again, at whatever cost, as the last was lost so.
  void OnRestart(controller::Role role, controller::LossReason cause);

  /// Writes `restarts` of the job, and of each role in all and by cause. `counted`:
  /// JobReport::restarts.
  void Fill(std::uint32_t counted, v1::TrainingJobStatus& status);

 private:
  struct OfRole {
    std::int64_t all = 0;
    std::map<controller::LossReason, std::int64_t> by_cause{};  // of those since causes are counted
  };

  static OfRole Read(const v1::RoleStatus& told);
  static void Write(const OfRole& restarts, v1::RoleStatus& status);

  std::map<controller::Role, OfRole> by_role_;
  std::int64_t before_ = 0;    // what the controller does not count any more
  std::uint32_t counted_ = 0;  // by it, when it was last looked at
};

}  // namespace adamant::kube
