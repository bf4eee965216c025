#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/cli/kubectl/cluster/session.h"
#include "operator/kube_client/api/resource.h"

namespace adamant::kubectl {

/// Steps of `kubectl adamant check` with the job that it has made. Each waits for what it has
/// caused. Errors of all: Aborted: it did not come in time, or the job ended before, with
/// what the job says; Cancelled; those of the client.
/// Threads: one thread at a time.
class TrainingCheck {
 public:
  using Seconds = std::chrono::duration<double>;

  /// All steps together have `timeout`, from now on. `session` must outlive this.
  TrainingCheck(const Session& session, kube::ObjectKey job, std::chrono::seconds timeout)
      : session_(session), job_(std::move(job)), deadline_(session.clock.Now() + timeout) {}

  /// Returns how long it was until all processes have joined and an epoch is open.
  absl::StatusOr<Seconds> AwaitTraining();

  /// Times from the deletion of a pod on.
  struct Replacement {
    Seconds made;    ///< another pod is made in its place
    Seconds joined;  ///< its process has joined the job
  };

  /// Deletes the pod of the role's first slot. `role` is as in labels: "parameter-server".
  absl::StatusOr<Replacement> LosePod(std::string_view role);

  /// Has the open epoch be the last one, and returns the accuracy that the job ends with.
  /// Errors: also Aborted where it has not learned.
  absl::StatusOr<double> Finish();

 private:
  using Condition = std::function<absl::StatusOr<bool>(const nlohmann::json& job)>;

  // Returns how long it was until `is_so`. `what` it is waited for is told where it is in vain.
  absl::StatusOr<Seconds> Await(const std::string& what, const Condition& is_so);
  // Its newest pod that has not ended; NotFound.
  absl::StatusOr<nlohmann::json> PodOf(const nlohmann::json& job, const std::string& slot);

  const Session& session_;
  const kube::ObjectKey job_;
  const Clock::TimePoint deadline_;
};

}  // namespace adamant::kubectl
