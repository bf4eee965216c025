#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/control/control_server.h"
#include "operator/core/job/bucket_outage.h"
#include "operator/core/job/job_controller.h"
#include "operator/kube/job/action_queue.h"
#include "operator/kube/job/address_check.h"
#include "operator/kube/job/checkpoint_requests.h"
#include "operator/kube/job/job_inbox.h"
#include "operator/kube/job/job_notes.h"
#include "operator/kube/job/job_observer.h"
#include "operator/kube/job/job_security.h"
#include "operator/kube/job/status_reporter.h"
#include "operator/kube/pods/objects/pod_settings.h"
#include "operator/kube/resources/job_resources.h"
#include "operator/kube/resources/job_writer.h"
#include "operator/kube/status/job_objects.h"
#include "operator/kube/status/job_view.h"
#include "operator/kube/status/restart_counter.h"
#include "operator/kube/storage/kube_state_store.h"
#include "operator/kube_client/api/client.h"
#include "operator/kube_client/api/event_recorder.h"
#include "services/common/base/clock.h"
#include "services/common/base/system/random_id.h"

namespace adamant::kube {

/// Dependencies that the reconcilers of all jobs share; all of them outlive the reconcilers.
struct ReconcilerContext {
  Client client;
  control::ControlServer& control;
  EventRecorder& events;
  const Clock& clock;
  PodSettings pods;
  JobObserver* observer = nullptr;  ///< null: none

  /// Names jobs and those who write their state; two calls never give the same. Called on any
  /// thread.
  std::function<std::uint64_t()> new_id = RandomId;
};

/// One job in a cluster: the reconciler around its controller. What happens is collected; Work
/// handles it, stores what must be stored, and makes pods what they should be. Threads: events come
/// from any; the members belong to one thread at a time.
class JobReconciler {
 public:
  /// `wake` is called, on any thread, when there is something to do.
  JobReconciler(const ReconcilerContext& context,
                std::shared_ptr<const JobView> view,
                std::function<void()> wake);
  ~JobReconciler();
  JobReconciler(const JobReconciler&) = delete;
  JobReconciler& operator=(const JobReconciler&) = delete;

  [[nodiscard]] const std::string& uid() const { return job_.uid; }

  /// Nothing is left to do for this job but to delete it some time.
  [[nodiscard]] bool done() const { return done_; }

  /// Does what is to be done, given the job and its objects as they were last seen. Returns when to
  /// be called again though nothing has happened. Errors: those of the API: to be called again
  /// after a while. Aborted: another controller leads this job, and this reconciler must be
  /// dropped.
  absl::StatusOr<Clock::TimePoint> Work(std::shared_ptr<const JobView> view,
                                        const JobObjects& seen);

 private:
  static constexpr std::chrono::milliseconds kLastRetry{1'000};

  // How the job is opened, and begins.
  void Take(std::shared_ptr<const JobView> view);
  absl::Status Open();
  absl::StatusOr<Clock::TimePoint> WaitToOpen(const absl::Status& why);
  absl::Status CheckExists() const;
  absl::StatusOr<PodViews> ReadPods() const;
  absl::Status EndLost(const absl::Status& why, const PodViews& pods);
  absl::Status Begin(const PodViews& pods);
  absl::Status HandleSuspension(const PodViews& pods);
  [[nodiscard]] std::optional<Clock::TimePoint> BeginsAgainAt() const;
  [[nodiscard]] controller::JobSettings Settings() const;
  void ServeJob();
  void HandleSpec();

  // What happens, and what the controller makes of it.
  void WorkMeanwhile();
  void HandleEvents();
  void Handle(const controller::Event& event);
  absl::StatusOr<bool> HandleExits(const std::vector<controller::ProcessExited>& exited);
  void Do(const controller::Action& action);  // what should run JobController::Wanted says

  // The status.
  void TellTrouble(const absl::Status& status);
  v1::TrainingJobStatus StatusToTell(const controller::JobReport& report, const PodViews& pods);
  [[nodiscard]] Clock::TimePoint NextTimer(Clock::TimePoint now) const;
  [[nodiscard]] std::string Now() const;  // as the API writes times
  absl::Status WriteStatus(v1::TrainingJobStatus status);
  absl::Status CheckLeads() const;

  const ReconcilerContext& context_;
  const Client client_;
  const JobIdentity job_;
  const std::shared_ptr<JobInbox> inbox_;

  std::shared_ptr<const JobView> view_;
  KubeStateStore store_;
  std::int64_t generation_ = 0;  // of the spec that the controller was told last
  std::unique_ptr<controller::JobController> controller_;
  std::deque<controller::Event> events_;  // for the controller, to be handled in order
  absl::Status lost_;                     // not OK: what the job's controller knew is lost

  JobWriter writer_;
  AddressCheck addresses_;
  JobSecurity security_;
  JobResources resources_;
  CheckpointRequests checkpoints_;
  StatusReporter status_;
  RestartCounter restarts_;
  JobNotes notes_;
  ActionQueue actions_;  // of the controller
  controller::BucketOutage outage_;
  std::chrono::milliseconds retry_;  // until what could not be done is tried again
  absl::Status trouble_;             // what was told last
  bool done_ = false;
};

}  // namespace adamant::kube
