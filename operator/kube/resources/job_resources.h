#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/job/job_controller.h"
#include "operator/kube/pods/objects/pod_settings.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube/pods/reconcile.h"
#include "operator/kube/resources/eviction_budgets.h"
#include "operator/kube/resources/job_writer.h"
#include "operator/kube/resources/model_export.h"
#include "operator/kube/resources/output_trial.h"
#include "operator/kube/resources/pod_group_keeper.h"
#include "operator/kube/resources/pod_nodes.h"
#include "operator/kube/resources/process_pods.h"
#include "operator/kube/resources/server_claims.h"
#include "operator/kube/resources/server_moves.h"
#include "operator/kube/resources/waiting_servers.h"
#include "operator/kube/status/job_objects.h"
#include "operator/kube/status/job_view.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Everything of a job that is, and should be, in the cluster: pods, claims, budgets, policies, the
/// group, the export of its model. Its controller decides; this makes it so.
/// Threads: one.
class JobResources {
 public:
  /// Calls by which the controller hears of what has happened.
  struct Hooks {
    std::function<void(const controller::Event& event)> handle;
    /// Handles all of them before anything is stored; false: what they led to is not stored yet.
    std::function<absl::StatusOr<bool>(const std::vector<controller::ProcessExited>& exited)>
        handle_exits;
  };

  /// The arguments must outlive this.
  JobResources(JobWriter& writer, const PodSettings& settings, Hooks hooks);

  /// Takes the job and its nodes as they were last seen.
  void Take(std::shared_ptr<const JobView> view, const JobObjects& seen);

  /// The job begins (again): led by this controller, with these pods there of an earlier leader.
  void Begin(std::shared_ptr<const JobView> view,
             const controller::JobController& controller,
             const PodViews& survivors);

  /// The controller has nothing more to do.
  void Finish() { finished_ = true; }
  [[nodiscard]] bool finished() const { return finished_; }

  /// The model of this snapshot is to be written to the output.
  void WantExport(std::uint64_t snapshot) { export_.Want(snapshot); }

  /// Makes all what it should be, given the job's objects as they were last seen. After Begin.
  /// Errors: those of the API.
  absl::Status Make(const JobObjects& seen);

  /// Deletes these pods of a job that nobody can lead any more.
  absl::Status RemoveAll(const PodViews& pods);

  /// The pods of a job that has ended stay, for its user. After Begin.
  [[nodiscard]] bool LeavesPods() const;

  /// Returns WrittenOutputText of the claim that was written to; "": none was.
  [[nodiscard]] const std::string& written_output() const { return output_.written(); }

  [[nodiscard]] const PodNodes& nodes() const { return nodes_; }

  /// Returns when to make all anew though nothing has happened; nullopt: never.
  [[nodiscard]] std::optional<Clock::TimePoint> NextTimer() const;

 private:
  [[nodiscard]] ObservedPod ObserveOne(const PodView& view) const;
  [[nodiscard]] std::vector<ObservedPod> Observe(const PodViews& pods);
  [[nodiscard]] std::optional<ObservedPod> ObserveExport(const PodViews& pods,
                                                         OutputWork work) const;
  [[nodiscard]] NodeTimeouts Timeouts() const;
  void HandleWaiting(const PodViews& pods);
  void HandleZones();
  [[nodiscard]] nlohmann::json ServersTolerations() const;
  absl::Status MoveServer(const JobObjects& seen);
  [[nodiscard]] ServerClaims::Volumes VolumesInUse() const;
  absl::Status MakePods(const JobObjects& seen);
  absl::Status RemovePods(const std::vector<DeletePod>& removals, const PodViews& pods);
  absl::Status CleanUp(const PodViews& pods);
  absl::StatusOr<bool> CheckBeforeFirstPod(const JobObjects& seen);
  absl::StatusOr<bool> CheckOutput(const JobObjects& seen);
  absl::Status MakePolicies();
  absl::Status MakePolicy(nlohmann::json policy) const;
  absl::Status MakeExport(const PodViews& pods);
  absl::Status EndExports(const PodViews& pods);

  JobWriter& writer_;
  const PodSettings& settings_;
  const Hooks hooks_;
  const controller::JobController* controller_ = nullptr;
  std::shared_ptr<const JobView> view_;
  bool finished_ = false;
  PodNodes nodes_;
  std::map<std::string, std::string> zones_;  // by node, as the controller was told
  ServerClaims claims_;
  ProcessPods pods_;
  WaitingServers waiting_;
  ServerMoves moves_;
  std::optional<Clock::TimePoint> next_loss_;  // when a node that is away will matter
  EvictionBudgets budgets_;
  PodGroupKeeper group_;
  ModelExport export_;
  OutputTrial output_;
  bool output_checked_ = false;
  bool policies_made_ = false;
};

}  // namespace adamant::kube
