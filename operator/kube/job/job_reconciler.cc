#include "operator/kube/job/job_reconciler.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "operator/control/job_settings.h"
#include "operator/core/state/state.h"
#include "operator/kube/api/custom_resources.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube/volumes/data_claims.h"
#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/base/json.h"
#include "operator/kube_client/base/time.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

using controller::JobController;
using controller::Phase;

constexpr std::chrono::milliseconds kWriteTimeout{3'000};  // a hung API must not hold the job up
// A cut connection is there again at once, an API server after a while.
constexpr std::chrono::milliseconds kFirstRetry{20};
constexpr std::chrono::minutes kJoinTimeout{15};  // a node may have to fetch the image
constexpr std::chrono::seconds kExitDelay{10};    // a busy node tells late that a container ended

}  // namespace

JobReconciler::JobReconciler(const ReconcilerContext& context,
                             std::shared_ptr<const JobView> view,
                             std::function<void()> wake)
    : context_(context),
      client_(context.client.With(kWriteTimeout)
                  .WithoutRetries()
                  .With([this] { WorkMeanwhile(); })
                  .WithWarnings([this](const std::string& text) { notes_.OnWarning(text); })),
      job_{.key = view->key, .uid = view->uid},
      inbox_(std::make_shared<JobInbox>(std::move(wake))),
      view_(std::move(view)),
      store_(client_, job_, std::to_string(context.new_id())),
      writer_(client_,
              job_,
              context.events,
              context.clock,
              [this](const std::string& why) { Handle(controller::ReconcilerFailed{why}); }),
      addresses_(context.control, job_),
      security_(client_, job_, context.pods),
      resources_(writer_,
                 security_.pods(),
                 {.handle = [this](const controller::Event& event) { Handle(event); },
                  .handle_exits = [this](const auto& exited) { return HandleExits(exited); }}),
      status_(writer_),
      notes_(writer_, resources_.nodes(), restarts_),
      actions_(store_,
               writer_,
               notes_,
               context.clock,
               [this](const controller::Action& action) { Do(action); }),
      retry_(kFirstRetry) {}

JobReconciler::~JobReconciler() {
  context_.control.RemoveJob(job_.uid);
  inbox_->Close();
}

absl::StatusOr<Clock::TimePoint> JobReconciler::Work(std::shared_ptr<const JobView> view,
                                                     const JobObjects& seen) {
  const PodViews& pods = seen.pods;
  Take(std::move(view));
  resources_.Take(view_, seen);
  addresses_.Update(pods);
  if (controller_ == nullptr) {
    status_.StartFrom(view_->resource_version);
    if (view_->job->spec().run_policy().suspend() && pods.empty()) {
      ADAMANT_RETURN_IF_ERROR(WriteStatus(SuspendedStatus(*view_, Now())));
      return Clock::TimePoint::max();
    }
    const absl::Status opened = lost_.ok() ? Open() : lost_;
    if (absl::IsDataLoss(opened)) {
      ADAMANT_RETURN_IF_ERROR(EndLost(opened, pods));
      return Clock::TimePoint::max();
    }
    if (!opened.ok()) {
      return WaitToOpen(opened);
    }
    writer_.Note("read the job's state", opened);
  }
  const absl::Status stored = actions_.StoreHeld();
  absl::Status status = stored;
  HandleEvents();
  ADAMANT_RETURN_IF_ERROR(actions_.taken_over());
  const bool clear = actions_.IsClear();
  bool finished = false;  // and all that follows from it is done
  if (clear) {
    ADAMANT_RETURN_IF_ERROR(HandleSuspension(pods));
    HandleSpec();
    if (checkpoints_.Take(*view_, controller_->state().last_snapshot)) {
      Handle(controller::CheckpointRequested{});
    }
    writer_.failed().BeginPass();
    finished = resources_.finished();
    status.Update(resources_.Make(seen));
    writer_.failed().EndPass(!actions_.holds());
    ADAMANT_RETURN_IF_ERROR(actions_.taken_over());
  }
  const Clock::TimePoint now = context_.clock.Now();
  controller::JobReport report = controller_->Report();
  outage_.TellIn(report, now, context_.clock.WallNow());
  context_.control.SetReport(job_.uid, report);
  status.Update(WriteStatus(StatusToTell(report, pods)));
  const bool decided = actions_.holds();  // meanwhile; this may be the last time to store it
  status.Update(stored.ok() ? actions_.StoreHeld() : stored);
  ADAMANT_RETURN_IF_ERROR(actions_.taken_over());
  done_ = status.ok() && finished && !actions_.holds() && !BeginsAgainAt() &&
          (resources_.LeavesPods() || AllEnded(pods));
  const Clock::TimePoint timer = NextTimer(now);
  TellTrouble(status);
  if (status.ok() && clear && !actions_.holds()) {
    retry_ = kFirstRetry;
    return decided || finished != resources_.finished() ? now : timer;
  }
  return std::min(timer, now + std::exchange(retry_, std::min(2 * retry_, kLastRetry)));
}

Clock::TimePoint JobReconciler::NextTimer(Clock::TimePoint now) const {
  Clock::TimePoint timer = done_ ? Clock::TimePoint::max() : controller_->NextTimer(now);
  if (!resources_.finished()) {
    timer = std::min(timer, status_.next_progress());
  }
  for (const auto& time : {BeginsAgainAt(), resources_.NextTimer()}) {
    timer = std::min(timer, time.value_or(timer));
  }
  return timer;
}

// An end counts once it is stored: until then another controller may yet go on with the job.
v1::TrainingJobStatus JobReconciler::StatusToTell(const controller::JobReport& report,
                                                  const PodViews& pods) {
  v1::TrainingJobStatus told = *view_->status;
  if (!controller::IsFinal(report.phase) || !actions_.holds()) {
    told = StatusOf(report, pods, *view_, Now());
    checkpoints_.Answer(*view_, controller_->state().checkpoint, told);
    AddHistory(controller_->state(), report, told);
    restarts_.Fill(report.restarts, told);
    AddWrittenOutput(resources_.written_output(), *view_, Now(), told);
    if (!resources_.finished()) {
      told.set_last_report_time(Now());
    }
    if (context_.observer != nullptr) {
      context_.observer->OnReport(job_.key, {report, controller_->state(), told, *view_->job});
    }
  }
  status_.TellFailures(*view_, told);
  return told;
}

// Errors are tried again quietly, but each is told once.
void JobReconciler::TellTrouble(const absl::Status& status) {
  if (status != trouble_ && !status.ok()) {
    LogWarning("not all could be done for a job",
               {{"job", ToString(job_.key)}, {"error", status.ToString()}});
  }
  trouble_ = status;
}

// A change that is not valid is told, and the job goes on as it was.
void JobReconciler::Take(std::shared_ptr<const JobView> view) {
  if (view->job == nullptr) {
    auto kept = std::make_shared<JobView>(*view);
    kept->job = view_->job;
    view = std::move(kept);
  }
  view_ = store_.has_old_defaults() ? WithOldDefaults(std::move(view)) : std::move(view);
}

// Of a job that nobody else will let go on.
std::optional<Clock::TimePoint> JobReconciler::BeginsAgainAt() const {
  return view_->job->spec().run_policy().suspend() ? std::nullopt : controller_->BeginsAgainAt();
}

// --- How the job is opened, and begins

absl::Status JobReconciler::Open() {
  ADAMANT_ASSIGN_OR_RETURN(const controller::StateStore::Snapshot stored, store_.Load());
  actions_.StartFrom(stored.version);
  Take(view_);  // once more: what is stored says of which day its defaults are
  std::unique_ptr<JobController> controller;
  if (const auto state = stored.entries.find(controller::kStateKey);
      state != stored.entries.end()) {
    ADAMANT_RETURN_IF_ERROR(security_.Resume(*view_->status));
    ADAMANT_ASSIGN_OR_RETURN(controller, JobController::Restore(Settings(), state->second));
  } else if (view_->status->has_completion_time()) {
    return absl::DataLossError("the job has ended, and its state was deleted");
  } else {
    ADAMANT_RETURN_IF_ERROR(CheckExists());
    ADAMANT_RETURN_IF_ERROR(
        security_.Begin(*view_->status, [this] { return WriteStatus(*view_->status); }));
    controller = JobController::Create(Settings(), context_.new_id());
  }
  ADAMANT_ASSIGN_OR_RETURN(const PodViews there, ReadPods());
  restarts_.StartFrom(*view_->status, controller->state().restarts);
  controller_ = std::move(controller);  // not before: it has no term of its own until it begins
  ServeJob();
  return Begin(there);
}

// The cache may still show a job that is deleted, and with it what was stored: it must not begin
// anew.
absl::Status JobReconciler::CheckExists() const {
  const auto object = client_.Get(kTrainingJobs, job_.key);
  if (absl::IsNotFound(object.status()) || (object.ok() && UidOf(*object) != job_.uid)) {
    return absl::UnavailableError(ToString(job_.key) + " was deleted");
  }
  return object.status();
}

// The cache may lack what the last leader has made, and others in its place would only disturb it.
absl::StatusOr<PodViews> JobReconciler::ReadPods() const {
  ADAMANT_ASSIGN_OR_RETURN(
      const std::vector<Json> objects,
      client_.List(kPods, {.ns = job_.key.ns, .label_selector = kJobUidLabel + ("=" + job_.uid)}));
  PodViews pods;
  for (const Json& object : objects) {
    if (auto pod = ParsePod(object)) {
      pods.push_back(std::move(pod));
    }
  }
  return pods;
}

// Without what it knew nobody can go on, and to begin anew would throw away what was trained.
absl::Status JobReconciler::EndLost(const absl::Status& why, const PodViews& pods) {
  lost_ = why;
  writer_.failed().BeginPass();
  absl::Status status = resources_.RemoveAll(pods);
  writer_.failed().EndPass(true);
  v1::TrainingJobStatus told =
      view_->status->has_completion_time()  // then what became of it is told
          ? *view_->status
          : LostStatus(*view_, std::string(why.message()), Now());
  status_.TellFailures(*view_, told);
  if (told.SerializeAsString() != view_->status->SerializeAsString()) {
    status.Update(WriteStatus(told));
  }
  done_ = status.ok() && AllEnded(pods);
  return status;
}

absl::Status JobReconciler::Begin(const PodViews& pods) {
  const Phase phase = controller_->state().phase;
  JobController::Survivors survivors;
  survivors.resumes = phase == Phase::kSuspended && !view_->job->spec().run_policy().suspend();
  PodViews lasting;
  for (const auto& pod : pods) {
    if (pod->IsProcess() && !controller::IsFinal(phase)) {
      survivors.running.push_back(pod->pod.process);  // that of one that has ended is counted yet
      lasting.push_back(pod);
    }
  }
  resources_.Begin(view_, *controller_, lasting);
  actions_.Perform(controller_->Begin(context_.clock.Now(), survivors));
  return actions_.taken_over();
}

// An API that answers is asked again soon, and the user is told what it says; one that does not is
// left alone for longer and longer.
absl::StatusOr<Clock::TimePoint> JobReconciler::WaitToOpen(const absl::Status& why) {
  writer_.Note("read the job's state", why);
  TellTrouble(why);
  if (!IsAnswer(why)) {
    return why;
  }
  v1::TrainingJobStatus told = WaitingStatus(*view_, Now());
  told.set_last_report_time(Now());
  status_.TellFailures(*view_, told);
  if (!writer_.failed().Lasting(context_.clock.Now()).empty()) {
    WriteStatus(told).IgnoreError();  // it is tried again, with all the rest
  }
  return context_.clock.Now() + std::exchange(retry_, std::min(2 * retry_, kLastRetry));
}

controller::JobSettings JobReconciler::Settings() const {
  controller::JobSettings settings = control::SettingsOf(*view_->job);
  settings.join_timeout = kJoinTimeout;
  settings.exit_delay = kExitDelay;
  return settings;
}

void JobReconciler::ServeJob() {
  context_.control.AddJob(
      job_.uid,
      security_.streams(),
      *view_->job,
      kDataRoot,
      [inbox = inbox_](controller::Event event) { inbox->Push(std::move(event)); });
}

void JobReconciler::HandleSpec() {
  if (generation_ != view_->generation) {
    if (std::exchange(generation_, view_->generation) != 0) {
      ServeJob();  // to processes that start from now on
    }
    Handle(controller::SpecChanged{Settings()});
  }
}

absl::Status JobReconciler::HandleSuspension(const PodViews& pods) {
  const bool wanted = view_->job->spec().run_policy().suspend();
  const bool suspended = controller_->state().phase == Phase::kSuspended;
  if (wanted && !suspended) {
    Handle(controller::SuspendRequested{.reason = kSuspendedByUser});
  }
  const auto again = controller_->BeginsAgainAt();
  const bool is_time = !again || *again <= context_.clock.Now();
  if (!wanted && suspended && resources_.finished() && AllEnded(pods) && is_time) {
    ADAMANT_ASSIGN_OR_RETURN(controller_,
                             JobController::Restore(Settings(), Encode(controller_->state())));
    return Begin({});
  }
  return actions_.taken_over();
}

// While a request waits for the API: what leads the epoch goes on, and whatever is to be stored is
// held. Asks nothing of the API itself.
void JobReconciler::WorkMeanwhile() {
  if (controller_ != nullptr) {
    actions_.Meanwhile([this] { HandleEvents(); });
  }
}

void JobReconciler::HandleEvents() {
  std::ranges::move(inbox_->TakeAll(), std::back_inserter(events_));
  actions_.Together([this] {
    while (!events_.empty()) {
      const controller::Event event = std::move(events_.front());
      events_.pop_front();
      if (!addresses_.TurnsAway(event)) {
        Handle(event);
      }
    }
    Handle(controller::Tick{});
  });
}

absl::StatusOr<bool> JobReconciler::HandleExits(
    const std::vector<controller::ProcessExited>& exited) {
  actions_.Together([&] {
    for (const controller::ProcessExited& event : exited) {
      Handle(event);
    }
  });
  ADAMANT_RETURN_IF_ERROR(actions_.taken_over());
  return !actions_.holds();
}

void JobReconciler::Handle(const controller::Event& event) {
  if (actions_.taken_over().ok()) {
    actions_.Perform(controller_->Handle(event, context_.clock.Now()));
  }
}

void JobReconciler::Do(const controller::Action& action) {
  if (const auto* send = std::get_if<controller::Send>(&action)) {
    context_.control.Send(*send);
  } else if (const auto* close = std::get_if<controller::CloseConnection>(&action)) {
    context_.control.Close(close->connection);
  } else if (const auto* wanted = std::get_if<controller::Export>(&action)) {
    resources_.WantExport(wanted->snapshot);
  } else if (const auto* note = std::get_if<controller::Note>(&action)) {
    notes_.Tell(*note);
  } else if (std::holds_alternative<controller::Finished>(action)) {
    resources_.Finish();
  }
  if (context_.observer != nullptr) {
    context_.observer->OnAction(job_.key, action);
  }
}

// --- The status

std::string JobReconciler::Now() const { return FormatTime(context_.clock.WallNow()); }

absl::Status JobReconciler::WriteStatus(v1::TrainingJobStatus status) {
  security_.Tell(*view_, Now(), status);
  const absl::Status written = status_.Write(status, [this] { return CheckLeads(); });
  if (absl::IsAborted(written)) {
    actions_.OnTakenOver(written);
  }
  return written;
}

// One that has not begun to lead waits until it sees what has changed.
absl::Status JobReconciler::CheckLeads() const {
  return controller_ != nullptr
             ? store_.CheckIsOurs()
             : absl::FailedPreconditionError(ToString(job_.key) + " has changed");
}

}  // namespace adamant::kube
