#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/control/control_server.h"
#include "operator/core/job/bucket_outage.h"
#include "operator/core/job/job_controller.h"
#include "operator/kube/api/api_pause.h"
#include "operator/kube/api/failed_writes.h"
#include "operator/kube/job/held_actions.h"
#include "operator/kube/job/job_observer.h"
#include "operator/kube/pods/disruption_budget.h"
#include "operator/kube/pods/member_addresses.h"
#include "operator/kube/pods/node_view.h"
#include "operator/kube/pods/pod_memory.h"
#include "operator/kube/pods/pod_object.h"
#include "operator/kube/pods/reconcile.h"
#include "operator/kube/status/job_objects.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube/status/job_view.h"
#include "operator/kube/status/restart_counter.h"
#include "operator/kube/status/status_writer.h"
#include "operator/kube/storage/kube_state_store.h"
#include "operator/kube_client/api/client.h"
#include "operator/kube_client/api/event_recorder.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// From the system's source of randomness.
std::uint64_t RandomId();

/// What the bodies of all jobs share; all of it outlives them.
struct BodyContext {
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

/// One job in a cluster: the body around its controller. What happens is collected; Work handles
/// it, stores what must be stored, and makes pods what they should be.
/// Threads: events come from any; the members belong to one thread at a time.
class JobBody {
 public:
  /// `wake` is called, on any thread, when there is something to do.
  JobBody(const BodyContext& context,
          std::shared_ptr<const JobView> view,
          std::function<void()> wake);
  ~JobBody();
  JobBody(const JobBody&) = delete;
  JobBody& operator=(const JobBody&) = delete;

  [[nodiscard]] const std::string& uid() const { return job_.uid; }

  /// Nothing is left to do for this job but to delete it some time.
  [[nodiscard]] bool done() const { return done_; }

  /// Does what is to be done, given the job and its objects as they were last seen. Returns when to
  /// be called again though nothing has happened. Errors: those of the API: to be called again
  /// after a while. Aborted: another controller leads this job, and this body must be dropped.
  absl::StatusOr<Clock::TimePoint> Work(std::shared_ptr<const JobView> view,
                                        const JobObjects& seen);

 private:
  class Inbox;

  static constexpr std::chrono::milliseconds kLastRetry{1'000};
  // Between two parameter servers that move; longer and longer, as it may be for nothing.
  static constexpr std::chrono::minutes kFirstMoveWait{10};
  static constexpr std::chrono::minutes kLastMoveWait{24 * 60};
  // Between two attempts to write the model; longer and longer.
  static constexpr std::chrono::milliseconds kFirstExportWait{2'000};
  static constexpr std::chrono::minutes kLastExportWait{2};
  static constexpr std::chrono::seconds kExportPatience{60};  // until it is told that its pod waits

  void Take(std::shared_ptr<const JobView> view);
  void TellTrouble(const absl::Status& status);
  absl::Status Open();
  absl::StatusOr<Clock::TimePoint> WaitToOpen(const absl::Status& why);
  absl::Status CheckExists() const;
  absl::StatusOr<PodViews> ReadPods() const;
  absl::Status EndLost(const absl::Status& why, const PodViews& pods);
  absl::Status Begin(const PodViews& pods);
  absl::Status StoreHeld();
  absl::Status Store(const std::vector<controller::Persist::Entry>& entries);
  void WorkMeanwhile();
  void HandleEvents();
  void LookAtAddresses(const PodViews& pods);
  bool IsStranger(const controller::Event& event);
  void TurnAway(controller::ConnectionId connection, const std::string& why);
  [[nodiscard]] std::optional<Clock::TimePoint> BeginsAgainAt() const;
  absl::Status HandleSuspension(const PodViews& pods);
  [[nodiscard]] controller::JobSettings Settings() const;
  void ServeJob();
  void HandleSpec();
  void Handle(const controller::Event& event);
  void HandleTogether(const std::function<void()>& handle);
  void Perform(std::vector<controller::Action> actions);
  void PerformAll();
  void Do(controller::Action& action);
  void Persist(const controller::Persist& persist);
  void Tell(const controller::Note& note);
  [[nodiscard]] std::string WhereItRan(controller::MemberId id) const;
  void OnWarning(const std::string& text);
  void Record(bool warning, std::string reason, std::string message) const;

  void ObserveNodes(const JobObjects& seen);
  [[nodiscard]] ObservedPod ObserveOne(const PodView& view) const;
  [[nodiscard]] std::vector<ObservedPod> Observe(const PodViews& pods);
  [[nodiscard]] NodePatience Patience() const;
  void HandleWaiting(const PodViews& pods);
  void HandleZones();
  void AskForUnseen();
  void FindShutOut(const JobObjects& seen);
  struct Waiting;
  void AskForClaim(const controller::StartProcess& process,
                   const JobObjects& seen,
                   Waiting& pod) const;
  [[nodiscard]] std::string NodeOfVolume(const Json& claim, const JobObjects& seen) const;
  [[nodiscard]] Json ServersTolerations() const;
  absl::Status MoveServer(const JobObjects& seen);
  [[nodiscard]] static bool AllEnded(const PodViews& pods);
  [[nodiscard]] static bool NoProcessRuns(const PodViews& pods);
  [[nodiscard]] bool LeavesPods() const;
  absl::Status MakePods(const PodViews& pods);
  absl::Status CleanUp(const PodViews& pods);
  absl::StatusOr<bool> CheckBeforeFirstPod(const PodViews& pods);
  absl::Status CheckTemplates();
  absl::StatusOr<bool> CheckOutput(const PodViews& pods);
  absl::StatusOr<bool> TryOutput(const PodViews& pods);
  absl::Status MarkRemoval(const DeletePod& removal, const PodViews& pods) const;
  absl::Status CreatePods(std::vector<controller::StartProcess> processes, const PodGroup& group);
  absl::Status TryToCreatePod(const controller::StartProcess& process, const PodGroup& group);
  absl::Status CreatePod(const controller::StartProcess& process, const PodGroup& group);
  absl::Status Refused(const std::string& what, const absl::Status& why);
  absl::Status RemovePod(const DeletePod& removal);
  absl::Status CreateClaim(const Json& claim);
  absl::Status MakeServersClaim(controller::MemberId server, std::uint64_t volume);
  absl::Status DeleteClaim(std::uint32_t slot, std::uint64_t volume);
  absl::Status DeleteLeftClaims();
  absl::Status DeleteAllClaims();
  absl::Status MakeBudgets(const BudgetViews& seen);
  absl::Status MakeBudget(controller::Role role, int min_available, const BudgetViews& seen);
  absl::Status WriteBudget(controller::Role role, int min_available, const BudgetView* there);
  absl::Status MakePodGroup(const PodViews& pods);
  [[nodiscard]] std::optional<Clock::TimePoint> NextGroupLook() const;
  absl::Status CreateOnce(const Resource& resource, Json object, std::string& uid);

  void HandleCheckpointRequest();
  void AnswerCheckpointRequest(v1::TrainingJobStatus& status) const;

  absl::Status MakeExport(const PodViews& pods);
  absl::Status EndExports(const PodViews& pods);
  absl::Status StartExport();
  absl::Status WriteExportSource();
  absl::Status FinishExport(const ObservedPod& pod);
  void NoteExport(const absl::Status& status);
  struct FailedAttempt;
  std::string NoteFailed(const ObservedPod& pod, FailedAttempt& attempt) const;
  absl::Status WaitOfExport(const ObservedPod& pod);
  [[nodiscard]] std::optional<Clock::TimePoint> NextExport() const;
  [[nodiscard]] Json ExportSource() const;

  // `what` begins with a verb: "create pod worker-0".
  void NoteWrite(const std::string& what, const absl::Status& status);
  void AskWhetherItAnswers();
  v1::TrainingJobStatus StatusToTell(const controller::JobReport& report, const PodViews& pods);
  void TellFailures(v1::TrainingJobStatus& status);
  [[nodiscard]] std::string Now() const;  // as the API writes times
  absl::Status WriteStatus(const v1::TrainingJobStatus& status);
  absl::Status CheckLeads() const;

  const BodyContext& context_;
  const Client client_;
  const JobIdentity job_;
  const std::shared_ptr<Inbox> inbox_;

  std::shared_ptr<const JobView> view_;
  KubeStateStore store_;
  std::int64_t generation_ = 0;  // of the spec that the controller was told last
  std::uint64_t version_ = 0;    // of the state that is stored
  std::unique_ptr<controller::JobController> controller_;
  std::deque<controller::Event> events_;    // for the controller, to be handled in order
  std::deque<controller::Action> actions_;  // of the controller, to be performed in order
  HeldActions held_;
  bool waits_ = false;     // for an answer of the API
  bool collects_ = false;  // what is to be stored: several events are handled
  std::map<controller::Note::Kind, Clock::TimePoint> epoch_events_;  // when they were told last
  ApiPause pause_;
  ApiPause status_pause_;    // somebody may hold up what is stored, and that is to be told
  absl::Status lost_;        // not OK: what the job's controller knew is lost
  absl::Status taken_over_;  // not OK: another controller has written to the state
  bool finished_ = false;

  bool templates_checked_ = false;
  bool output_checked_ = false;
  PodMemory pod_memory_;
  MemberAddresses addresses_;
  NodeViews nodes_;  // of the pods
  NodeAbsences absences_;
  std::map<controller::StartProcess, std::string> ran_on_;  // the nodes of pods, also of some gone
  std::map<std::string, std::string> zones_;                // by node, as the controller was told
  // A parameter server's pod that waits for a node: maybe for the one that its volume is on.
  struct Waiting {
    std::string node{};                       // empty: it may run anywhere, as far as is known
    Clock::TimePoint ask_at{};                // for its claim
    std::optional<Clock::TimePoint> since{};  // the node takes no pods
    std::string deleted_claim{};              // its claim, if that is gone or going
  };
  std::map<std::string, Waiting> shut_out_;  // by the pod's UID
  std::string moving_;                       // UID of the pod that was deleted to be elsewhere
  Clock::TimePoint next_move_{};             // when to look for the next
  std::chrono::minutes move_wait_{kFirstMoveWait};
  std::optional<Clock::TimePoint> next_loss_;           // when a node that is away will matter
  std::map<std::uint32_t, std::uint64_t> left_claims_;  // by slot: volumes up to it are deleted
  std::map<std::string, std::string> claims_;           // of servers: UIDs of those made or found
  Budgets budgets_;
  std::optional<Clock::TimePoint> next_group_look_;

  // What was passed on last: the request, and the newest snapshot that had begun then.
  struct CheckpointRequest {
    std::string request;
    std::uint64_t after = 0;
  };
  CheckpointRequest checkpoint_;
  std::uint64_t export_ = 0;  // snapshot to be written; 0: none
  // The attempt to write to the output that has failed last.
  struct FailedAttempt {
    std::string pod_uid;
    absl::Status why;          // OK: none has failed since it was to be written
    Clock::TimePoint again{};  // when the next is due
    std::chrono::milliseconds wait{};
  };
  FailedAttempt failed_export_;
  std::optional<Clock::TimePoint> export_waits_since_;  // its pod has not started
  FailedAttempt failed_trial_;                          // of the claim, before anything is trained
  std::string output_written_;  // WrittenOutputText of the claim that was written to; "": none
  StatusWriter status_writer_;
  FailedWrites failed_writes_;
  RestartCounter restarts_;
  controller::BucketOutage outage_;
  std::set<std::string> warnings_;   // of the API, that were told
  std::chrono::milliseconds retry_;  // until what could not be done is tried again
  absl::Status trouble_;             // what was told last
  bool done_ = false;
};

}  // namespace adamant::kube
