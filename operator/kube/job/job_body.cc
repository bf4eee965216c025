#include "operator/kube/job/job_body.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <variant>

#include "operator/core/state/state.h"
#include "operator/kube/job/job_body_inbox.h"
#include "operator/kube/job/job_event.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube_client/base/json.h"
#include "operator/kube_client/base/time.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

using controller::Action;
using controller::JobController;
using controller::Phase;
using controller::StartProcess;

constexpr std::chrono::milliseconds kWriteTimeout{3'000};  // a hung API must not hold the job up
// A cut connection is there again at once, an API server after a while.
constexpr std::chrono::milliseconds kFirstRetry{20};
constexpr std::chrono::minutes kEpochEvents{1};  // between two of a kind that come with epochs
constexpr std::size_t kMostWarnings = 64;        // of the API that a job's user is told

bool IsWarning(controller::Note::Kind kind) {
  using Kind = controller::Note::Kind;
  return kind == Kind::kLost || kind == Kind::kAlarm || kind == Kind::kFailure ||
         kind == Kind::kFailover || kind == Kind::kDiverged || kind == Kind::kReleased;
}

// Of an Event: "EpochOpened" of "epoch_opened".
std::string ReasonOf(controller::Note::Kind kind) {
  std::string reason;
  bool begins = true;  // a word
  for (const char c : controller::NoteName(kind)) {
    if (c == '_' || c == '-') {
      begins = true;
      continue;
    }
    reason += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = false;
  }
  return reason;
}

// What comes with every epoch, and would be all that is heard of a job of short ones.
bool ComesWithEpochs(const controller::Note& note) {
  using Kind = controller::Note::Kind;
  return note.kind == Kind::kEpochOpened || note.kind == Kind::kEpochClosing;
}

}  // namespace

std::uint64_t RandomId() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

JobBody::JobBody(const BodyContext& context,
                 std::shared_ptr<const JobView> view,
                 std::function<void()> wake)
    : context_(context),
      client_(context.client.With(kWriteTimeout)
                  .WithoutRetries()
                  .With([this] { WorkMeanwhile(); })
                  .WithWarnings([this](const std::string& text) { OnWarning(text); })),
      job_{.key = view->key, .uid = view->uid},
      inbox_(std::make_shared<Inbox>(std::move(wake))),
      view_(std::move(view)),
      store_(client_, job_, std::to_string(context.new_id())),
      status_writer_(client_, job_),
      retry_(kFirstRetry) {}

JobBody::~JobBody() {
  context_.control.RemoveJob(job_.uid);
  inbox_->Close();
}

absl::StatusOr<Clock::TimePoint> JobBody::Work(std::shared_ptr<const JobView> view,
                                               const JobObjects& seen) {
  const PodViews& pods = seen.pods;
  Take(std::move(view));
  ObserveNodes(seen);
  LookAtAddresses(pods);
  if (controller_ == nullptr) {
    status_writer_.StartFrom(view_->resource_version);
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
    NoteWrite("read the job's state", opened);
  }
  absl::Status status = StoreHeld();
  HandleEvents();
  ADAMANT_RETURN_IF_ERROR(taken_over_);
  if (held_.empty() && pause_.Check(context_.clock.Now()).ok()) {
    ADAMANT_RETURN_IF_ERROR(HandleSuspension(pods));
    HandleSpec();
    HandleCheckpointRequest();
    failed_writes_.BeginPass();
    FindShutOut(seen);
    status.Update(MakePodGroup(pods));
    status.Update(MakePods(pods));
    status.Update(MoveServer(seen));
    status.Update(MakeBudgets(seen.budgets));
    status.Update(MakeExport(pods));
    failed_writes_.EndPass(held_.empty());
    ADAMANT_RETURN_IF_ERROR(taken_over_);
  }
  const Clock::TimePoint now = context_.clock.Now();
  controller::JobReport report = controller_->Report();
  outage_.TellIn(report, now, context_.clock.WallNow());
  context_.control.SetReport(job_.uid, report);
  v1::TrainingJobStatus told = StatusToTell(report, pods);
  TellFailures(told);
  status.Update(WriteStatus(told));
  ADAMANT_RETURN_IF_ERROR(taken_over_);
  done_ = status.ok() && finished_ && held_.empty() && !BeginsAgainAt() &&
          (LeavesPods() || AllEnded(pods));
  Clock::TimePoint timer = done_ ? Clock::TimePoint::max() : controller_->NextTimer(now);
  if (!finished_) {
    timer = std::min(timer, status_writer_.next_progress());
  }
  for (const auto& time :
       {next_loss_, BeginsAgainAt(), NextExport(), pod_memory_.NextUnseen(), NextGroupLook()}) {
    timer = std::min(timer, time.value_or(timer));
  }
  TellTrouble(status);
  if (status.ok() && held_.empty()) {
    retry_ = kFirstRetry;
    return timer;
  }
  timer = std::min(timer, now + retry_);
  retry_ = std::min(2 * retry_, kLastRetry);
  return timer;
}

// An end counts once it is stored: until then another controller may yet go on with the job.
v1::TrainingJobStatus JobBody::StatusToTell(const controller::JobReport& report,
                                            const PodViews& pods) {
  if (controller::IsFinal(report.phase) && !held_.empty()) {
    return *view_->status;
  }
  v1::TrainingJobStatus told = StatusOf(report, pods, *view_, Now());
  AnswerCheckpointRequest(told);
  AddHistory(controller_->state(), report, told);
  restarts_.Fill(report.restarts, told);
  AddWrittenOutput(output_written_, *view_, Now(), told);
  if (!finished_) {
    told.set_last_report_time(Now());
  }
  return told;
}

// Errors are tried again quietly, but each is told once.
void JobBody::TellTrouble(const absl::Status& status) {
  if (status != trouble_ && !status.ok()) {
    LogWarning("not all could be done for a job",
               {{"job", ToString(job_.key)}, {"error", status.ToString()}});
  }
  trouble_ = status;
}

// A change that is not valid is told, and the job goes on as it was.
void JobBody::Take(std::shared_ptr<const JobView> view) {
  if (view->job == nullptr) {
    auto kept = std::make_shared<JobView>(*view);
    kept->job = view_->job;
    view = std::move(kept);
  }
  view_ = store_.has_old_defaults() ? WithOldDefaults(std::move(view)) : std::move(view);
}

// Of a job that nobody else will let go on.
std::optional<Clock::TimePoint> JobBody::BeginsAgainAt() const {
  return view_->job->spec().run_policy().suspend() ? std::nullopt : controller_->BeginsAgainAt();
}

absl::Status JobBody::HandleSuspension(const PodViews& pods) {
  const bool wanted = view_->job->spec().run_policy().suspend();
  const bool suspended = controller_->state().phase == Phase::kSuspended;
  if (wanted && !suspended) {
    Handle(controller::SuspendRequested{.reason = kSuspendedByUser});
  }
  const auto again = controller_->BeginsAgainAt();
  const bool is_time = !again || *again <= context_.clock.Now();
  if (!wanted && suspended && finished_ && AllEnded(pods) && is_time) {
    ADAMANT_ASSIGN_OR_RETURN(controller_,
                             JobController::Restore(Settings(), Encode(controller_->state())));
    return Begin({});
  }
  return taken_over_;
}

// While a request waits for the API: what leads the epoch goes on, and whatever is to be stored is
// held. Asks nothing of the API itself.
void JobBody::WorkMeanwhile() {
  if (controller_ != nullptr) {
    waits_ = true;
    HandleEvents();
    waits_ = false;
  }
}

void JobBody::HandleEvents() {
  std::ranges::move(inbox_->TakeAll(), std::back_inserter(events_));
  HandleTogether([this] {
    while (!events_.empty()) {
      const controller::Event event = std::move(events_.front());
      events_.pop_front();
      if (!IsStranger(event)) {
        Handle(event);
      }
    }
    Handle(controller::Tick{});
  });
}

// One write carries all that these events change.
void JobBody::HandleTogether(const std::function<void()>& handle) {
  if (waits_ || collects_) {
    return handle();
  }
  collects_ = true;
  handle();
  collects_ = false;
  PerformAll();
}

void JobBody::LookAtAddresses(const PodViews& pods) {
  for (const MemberAddresses::Stranger& stranger : addresses_.Update(pods)) {
    TurnAway(stranger.connection, stranger.why);
  }
}

// Says no to who joins as a process whose pod has another address.
bool JobBody::IsStranger(const controller::Event& event) {
  const auto* received = std::get_if<controller::Received>(&event);
  const auto* join =
      received != nullptr ? std::get_if<controller::Join>(&received->message) : nullptr;
  const std::string why = join != nullptr ? addresses_.OnJoin(received->connection, *join) : "";
  if (!why.empty()) {
    TurnAway(received->connection, why);
  }
  return !why.empty();
}

void JobBody::TurnAway(controller::ConnectionId connection, const std::string& why) {
  LogWarning("turns away a stranger", {{"job", ToString(job_.key)}, {"why", why}});
  context_.control.Send({.connection = connection, .message = controller::Refused{why}});
  context_.control.Close(connection);
}

void JobBody::Handle(const controller::Event& event) {
  if (taken_over_.ok()) {
    Perform(controller_->Handle(event, context_.clock.Now()));
  }
}

void JobBody::Perform(std::vector<Action> actions) {
  for (Action& action : actions) {
    AddAction(std::move(action), actions_);
  }
  PerformAll();
}

// To store one may wait, and what is left is then performed meanwhile.
void JobBody::PerformAll() {
  while (!actions_.empty() && taken_over_.ok()) {
    if (collects_ && std::holds_alternative<controller::Persist>(actions_.front())) {
      return;  // nothing that comes after it may be done before it is stored
    }
    Action action = std::move(actions_.front());
    actions_.pop_front();
    if (held_.empty() || held_.PassesOrKeeps(action)) {
      Do(action);
    }
  }
}

void JobBody::Do(Action& action) {
  if (const auto* persist = std::get_if<controller::Persist>(&action)) {
    Persist(*persist);
  } else if (const auto* send = std::get_if<controller::Send>(&action)) {
    context_.control.Send(*send);
  } else if (const auto* close = std::get_if<controller::CloseConnection>(&action)) {
    context_.control.Close(close->connection);
  } else if (const auto* wanted = std::get_if<controller::Export>(&action)) {
    export_ = wanted->snapshot;
  } else if (const auto* note = std::get_if<controller::Note>(&action)) {
    Tell(*note);
  } else if (std::holds_alternative<controller::Finished>(action)) {
    finished_ = true;
  } else if (context_.observer != nullptr) {
    context_.observer->OnAction(action);
  }
  // What should run follows from JobController::Wanted.
}

void JobBody::Persist(const controller::Persist& persist) {
  held_.Add(persist);
  if (!waits_) {
    StoreHeld().IgnoreError();  // it is held, and tried again
  }
}

absl::Status JobBody::StoreHeld() {
  while (!held_.empty()) {
    const std::vector<controller::Persist::Entry> entries = held_.entries();
    ADAMANT_RETURN_IF_ERROR(Store(entries));
    if (held_.entries() == entries) {  // else something was added meanwhile
      std::deque<Action> released = held_.Release();
      std::ranges::move(released, std::inserter(actions_, actions_.begin()));
      PerformAll();
    }
  }
  return taken_over_;
}

absl::Status JobBody::Store(const std::vector<controller::Persist::Entry>& entries) {
  ADAMANT_RETURN_IF_ERROR(pause_.Check(context_.clock.Now()));
  const absl::Status status = store_.CompareAndSwap(version_, entries);
  pause_.Note(status, context_.clock.Now());
  if (absl::IsAborted(status)) {  // nothing that this controller thinks counts any more
    taken_over_ = status;
    return status;
  }
  NoteWrite("update the job's state", status);
  ADAMANT_RETURN_IF_ERROR(status);
  ++version_;
  if (const auto loss = store_.TakeLoss()) {
    Tell({.kind = controller::Note::Kind::kAlarm, .text = *loss});
  }
  return absl::OkStatus();
}

void JobBody::Tell(const controller::Note& note) {
  if (ComesWithEpochs(note)) {
    const Clock::TimePoint now = context_.clock.Now();
    const auto [last, first] = epoch_events_.try_emplace(note.kind, now);
    if (!first && now - last->second < kEpochEvents) {
      return;
    }
    last->second = now;
  }
  if (note.kind == controller::Note::Kind::kRestarting && note.member) {
    restarts_.OnRestart(note.member->role, note.reason);
    if (context_.observer != nullptr) {
      context_.observer->OnRestart(note.member->role, note.reason);
    }
  }
  if (note.kind == controller::Note::Kind::kLost && note.member) {
    const std::string text = note.text + WhereItRan(*note.member);
    const bool disrupted = controller::IsDisruption(note.reason);
    return Record(!disrupted, disrupted ? "Disrupted" : ReasonOf(note.kind), text);
  }
  Record(IsWarning(note.kind), ReasonOf(note.kind), note.text);
}

// The API does not refuse it, but its user should know: once.
void JobBody::OnWarning(const std::string& text) {
  if (warnings_.size() < kMostWarnings && warnings_.insert(text).second) {
    LogWarning("the API warns", {{"job", ToString(job_.key)}, {"warning", text}});
    Record(true, "ApiWarning", "the API warns: " + text);
  }
}

void JobBody::Record(bool warning, std::string reason, std::string message) const {
  context_.events.Record(EventOf(job_, warning, std::move(reason), std::move(message)));
}

// --- The status

std::string JobBody::Now() const { return FormatTime(context_.clock.WallNow()); }

absl::Status JobBody::WriteStatus(const v1::TrainingJobStatus& status) {
  const Clock::TimePoint now = context_.clock.Now();
  if (!status_writer_.IsDue(status, now)) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(status_pause_.Check(now));
  const absl::Status written = status_writer_.Write(status, [this] { return CheckLeads(); });
  status_pause_.Note(written, context_.clock.Now());
  if (absl::IsAborted(written)) {
    taken_over_ = written;
  } else {
    NoteWrite("update the status", written);
  }
  if (const auto refusal = status_writer_.TakeRefusal()) {
    Record(true, kStatusRefused, RefusedStatusText(*refusal));
  }
  return written;
}

// One that has not begun to lead waits until it sees what has changed.
absl::Status JobBody::CheckLeads() const {
  return controller_ != nullptr
             ? store_.CheckIsOurs()
             : absl::FailedPreconditionError(ToString(job_.key) + " has changed");
}

}  // namespace adamant::kube
