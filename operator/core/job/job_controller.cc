#include "operator/core/job/job_controller.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "operator/core/diagnosis/recovery.h"
#include "operator/core/job/first_state.h"

namespace adamant::controller {
namespace {

// The servers may hold snapshots that an earlier controller has asked for and could not store.
constexpr std::uint64_t kSnapshotsOfATerm = std::uint64_t{1} << 20;

bool IsAboutBuckets(const Event& event) {
  const auto* received = std::get_if<Received>(&event);
  return received != nullptr && (std::holds_alternative<Proposals>(received->message) ||
                                 std::holds_alternative<BucketsReady>(received->message));
}

}  // namespace

std::unique_ptr<JobController> JobController::Create(JobSettings settings, std::uint64_t job_uid) {
  JobState state = NewState(settings, job_uid);
  return std::unique_ptr<JobController>(new JobController(std::move(settings), std::move(state)));
}

absl::StatusOr<std::unique_ptr<JobController>> JobController::Restore(JobSettings settings,
                                                                      std::string_view state) {
  absl::StatusOr<JobState> stored = StoredState(settings, state);
  if (!stored.ok()) {
    return stored.status();
  }
  return std::unique_ptr<JobController>(new JobController(std::move(settings), *std::move(stored)));
}

JobController::JobController(JobSettings settings, JobState state)
    : settings_(std::move(settings)),
      state_(std::move(state)),
      outcome_(state_, outbox_),
      processes_(settings_, state_, outbox_),
      starter_(settings_, outbox_, processes_),
      silence_(settings_, outbox_, processes_),
      restarts_(settings_, state_, outbox_, processes_),
      scaler_(settings_, processes_),
      placement_(settings_, state_, outbox_, processes_),
      data_reports_(settings_, state_, outbox_, starter_, outcome_),
      training_(settings_, state_, outbox_, processes_, starter_, placement_, outcome_),
      server_reports_(processes_, placement_, training_, outcome_),
      admission_(settings_, state_, outbox_, processes_, data_reports_, training_),
      losses_(settings_,
              state_,
              processes_,
              starter_,
              restarts_,
              silence_,
              placement_,
              training_,
              outcome_),
      suspension_(settings_, state_, training_, outcome_),
      start_deadline_(settings_, state_, outbox_, processes_, outcome_),
      deadlines_(settings_, state_),
      shutdown_(settings_, processes_, outbox_),
      reporter_(settings_, state_, processes_, placement_, training_.meter(), training_.alarms()),
      active_time_(state_, training_.meter()) {}

// --- The beginning

std::vector<Action> JobController::Begin(TimePoint now, const Survivors& survivors) {
  active_time_.Begin(now);
  const bool had_ended = IsFinal(state_.phase);
  // With each start that fails incarnations get nearer to those of the disks.
  const bool for_good = state_.end == EndKind::kStateIsOld;
  if (IsOver() || (had_ended && (for_good || !survivors.resumes))) {
    shutdown_.KillLeftovers();
    finished_ = true;
    return outbox_.Take(state_);
  }
  if (had_ended) {
    ResumeEnded();
  } else {
    TakeRates(settings_, state_);
  }
  const bool none_lives = !survivors.others && survivors.running.empty();
  goes_on_ = !had_ended && !survivors.running.empty() && !state_.recovery.going_back;
  if (had_ended || none_lives || state_.schedule_epochs == 0) {
    // No process lives that was told another number. An epoch that is open is ended in any case.
    state_.schedule_epochs = std::max<std::uint64_t>(settings_.epochs, state_.epoch);
  }
  const bool in_order = state_.phase == Phase::kSuspended;
  BeginTerm(survivors);
  // What was lost before a job ended counts no more when it resumes.
  const absl::Status judged =
      had_ended ? absl::OkStatus() : restarts_.DecideGivenUp(survivors.running);
  StartRoles(survivors.running, now);
  outcome_.FailOnLoss(judged);
  placement_.Begin(none_lives, in_order, now);
  outbox_.Add(ManifestOf(state_));  // the last controller may have died before it was written
  return outbox_.Take(state_);
}

void JobController::ResumeEnded() {
  ++state_.starts;
  const bool was_released = std::exchange(state_.released, false);
  if (!was_released) {
    state_.restarts = 0;
    for (SlotRecord& record : state_.slots) {
      record.losses = 0;
    }
  }
  training_.Resume(!was_released);
}

void JobController::BeginTerm(const Survivors& survivors) {
  ++state_.term;
  state_.phase = Phase::kStarting;
  state_.message.clear();
  state_.invalid = false;
  state_.end = EndKind::kOther;
  outbox_.StateChanged();
  outbox_.Tell(Note::Kind::kPhase, state_.epoch, std::string(PhaseName(state_.phase)));
  if (!survivors.running.empty()) {
    state_.last_snapshot = (state_.last_snapshot / kSnapshotsOfATerm + 1) * kSnapshotsOfATerm;
  }
}

void JobController::StartRoles(const std::vector<StartProcess>& running, TimePoint now) {
  if (state_.recovery.going_back) {
    return training_.GoBack(running, now);
  }
  starter_.StartRole(Role::kDataServer, running, now);
  // Else the others could not be told how long the job is.
  if (settings_.starts_together || TrainingExamples(settings_, state_) > 0) {
    starter_.StartRole(Role::kParameterServer, running, now);
    starter_.StartRole(Role::kWorker, running, now);
  }
}

bool JobController::IsOver() const {
  return state_.phase == Phase::kSucceeded && !training_.HasMore();
}

bool JobController::HasTrainedAll() const {
  return state_.phase != Phase::kSucceeded && state_.step == Step::kExporting &&
         !training_.HasMore() && !state_.recovery.ended_diverged;
}

// --- Events

std::vector<Action> JobController::Handle(const Event& event, TimePoint now, bool more) {
  if (finished_) {
    return {};
  }
  active_time_.Advance(now, training_.begun());
  if (wake_at_ && now > *wake_at_ + kHeldUp) {
    silence_.GrantTime(now);
    training_.OnHeldUp(now);
  }
  const Phase before = state_.phase;
  Dispatch(event, now);
  if (more && IsAboutBuckets(event)) {
    return {};
  }
  if (std::holds_alternative<Tick>(event)) {
    losses_.LoseSilent(now);
  }
  OnTimer(now);
  if (state_.phase != before && !state_.released) {
    outbox_.Tell(Note::Kind::kPhase, state_.epoch, std::string(PhaseName(state_.phase)));
  }
  wake_at_ = NextTimer(now);
  return outbox_.Take(state_);
}

void JobController::Dispatch(const Event& event, TimePoint now) {
  if (const auto* received = std::get_if<Received>(&event)) {
    OnReceived(*received, now);
  } else if (const auto* gone = std::get_if<Disconnected>(&event)) {
    processes_.OnDisconnected(gone->connection);
  } else if (const auto* exited = std::get_if<ProcessExited>(&event)) {
    losses_.OnExited(*exited, now);
  } else if (const auto* exported = std::get_if<Exported>(&event)) {
    training_.OnExported(*exported, now);
  } else if (const auto* suspend = std::get_if<SuspendRequested>(&event)) {
    suspension_.Request(*suspend, now);
  } else if (const auto* changed = std::get_if<SpecChanged>(&event)) {
    OnSpecChanged(changed->settings, now);
  } else if (const auto* waiting = std::get_if<ProcessesWait>(&event)) {
    admission_.OnWaiting(waiting->processes, now);
    start_deadline_.Explain(waiting->why);
  } else if (const auto* nodes = std::get_if<ZonesKnown>(&event)) {
    placement_.SetZones(nodes->zones);
  } else if (std::holds_alternative<CheckpointRequested>(event)) {
    training_.RequestCheckpoint(now);
  } else if (const auto* held = std::get_if<CheckpointsHeld>(&event)) {
    settings_.held_checkpoints = held->checkpoints;
  } else if (const auto* failed = std::get_if<ReconcilerFailed>(&event)) {
    outcome_.End(Phase::kFailed, failed->reason);
  }
}

void JobController::OnReceived(const Received& event, TimePoint now) {
  if (const auto* join = std::get_if<Join>(&event.message)) {
    return admission_.OnJoin(event.connection, *join, now);
  }
  if (ProcessTable::Slot* slot = processes_.Find(event.connection)) {
    if (const auto* loading = std::get_if<Loading>(&event.message)) {
      return silence_.OnLoading(*slot, *loading, now);
    }
    silence_.OnHeartbeat(*slot, now);
    OnMessage(*slot, event.message, now);
  }
}

void JobController::OnMessage(ProcessTable::Slot& slot,
                              const MemberMessage& message,
                              TimePoint now) {
  if (outcome_.IsDecided()) {
    return;
  }
  if (const auto* failure = std::get_if<Failure>(&message)) {
    slot.last_words = failure->message;
    return OnFailure(slot.id, *failure, now);
  }
  if (const auto* heartbeat = std::get_if<Heartbeat>(&message)) {
    return OnHeartbeat(slot, *heartbeat, now);
  }
  if (slot.id.role == Role::kParameterServer) {
    server_reports_.OnMessage(slot.id, message, now);
  }
  training_.OnMessage(slot.id, message, now);
}

void JobController::OnFailure(SlotId from, const Failure& failure, TimePoint now) {
  if (failure.diverged) {
    return training_.OnDiverged(state_.epoch, failure.message, now);
  }
  const std::string text = ToString(from) + ": " + failure.message;
  outbox_.Tell(Note::Kind::kFailure, from, text);
  if (failure.fatal && failure.invalid) {
    outcome_.FailAsInvalid(failure.message);
  } else if (failure.fatal) {
    outcome_.End(Phase::kFailed, text);
  }
}

void JobController::OnHeartbeat(ProcessTable::Slot& slot,
                                const Heartbeat& heartbeat,
                                TimePoint now) {
  if (const auto* worker = std::get_if<WorkerProgress>(&heartbeat.progress)) {
    if (training_.OnWorker(slot.id, *worker, now)) {
      return;
    }
  } else if (const auto* data = std::get_if<DataServerProgress>(&heartbeat.progress)) {
    data_reports_.OnProgress(slot.id, *data, now);
    training_.OnDataServer(slot.id, *data, now);
  } else if (const auto* server = std::get_if<ParameterServerProgress>(&heartbeat.progress)) {
    server_reports_.OnProgress(slot.id, *server, now);
  }
  losses_.LoseIfHung(slot, heartbeat.busy_seconds, now);
}

void JobController::OnSpecChanged(const JobSettings& settings, TimePoint now) {
  settings_.active_deadline = settings.active_deadline;
  settings_.epoch_deadline = settings.epoch_deadline;
  settings_.start_deadline = settings.start_deadline;
  settings_.on_start_deadline = settings.on_start_deadline;
  settings_.epochs = settings.epochs;
  settings_.target_accuracy = settings.target_accuracy;
  training_.OnIntervalChanged(
      std::exchange(settings_.checkpoint_interval, settings.checkpoint_interval));
  settings_.restart_limit = settings.restart_limit;
  settings_.restart_backoff = settings.restart_backoff;
  settings_.failure_rules = settings.failure_rules;
  settings_.on_divergence = settings.on_divergence;
  Scale(settings.workers, now);
}

void JobController::Scale(std::uint32_t workers, TimePoint now) {
  if (outcome_.IsDecided() || workers == settings_.workers) {
    return;
  }
  outbox_.Tell(Note::Kind::kScaled,
               state_.epoch,
               "the job has " + std::to_string(workers) + (workers == 1 ? " worker" : " workers") +
                   " now, " + std::to_string(settings_.workers) + " before");
  settings_.workers = workers;
  scaler_.AddWorkers(now);
  for (const SlotId id : scaler_.DismissWorkers(now)) {
    training_.OnLost(id, now);
  }
}

void JobController::OnTimer(TimePoint now) {
  suspension_.OnTimer(now);
  if (!outcome_.IsDecided()) {
    if (std::string why = deadlines_.WhyOver(); !why.empty()) {
      outcome_.End(Phase::kFailed, std::move(why));
    }
  }
  if (!outcome_.IsDecided()) {
    training_.Settle(now);
  }
  if (!outcome_.IsDecided()) {
    start_deadline_.Check(training_.begun(), now);
  }
  if (!outcome_.IsDecided()) {
    return training_.OnTimer(now);
  }
  finished_ = shutdown_.Step(state_.message, now);
  if (finished_) {
    start_deadline_.OnEnded(now);
  }
}

// --- What others ask

JobController::TimePoint JobController::NextTimer(TimePoint now) const {
  TimePoint next = now + std::chrono::hours(1);
  const auto consider = [&](std::optional<TimePoint> time) {
    if (time && *time < next) {
      next = *time;
    }
  };
  if (finished_) {
    return next;
  }
  if (IsFinal(state_.phase)) {
    return shutdown_.deadline();
  }
  if (!training_.ending()) {
    consider(starter_.NextTimer());
    consider(silence_.NextTimer());
  }
  consider(placement_.NextTimer());
  consider(training_.NextTimer());
  consider(suspension_.NextTimer());
  if (!training_.begun()) {
    consider(start_deadline_.NextTimer());
  }
  consider(deadlines_.Next(active_time_.counted_until(), training_.begun()));
  return next;
}

std::vector<StartProcess> JobController::Wanted() const {
  std::vector<StartProcess> wanted;
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    const bool starts =
        slot.liveness == ProcessTable::Liveness::kStarting && !shutdown_.HasStopped(slot.id.role);
    if (!finished_ && (starts || slot.liveness == ProcessTable::Liveness::kRunning)) {
      wanted.push_back({.id = slot.id, .generation = processes_.GenerationOf(slot.id)});
    }
  }
  return wanted;
}

JobReport JobController::Report() const {
  return reporter_.Report(
      {.now = active_time_.counted_until(), .handles = wake_at_.has_value(), .goes_on = goes_on_});
}

bool JobController::CanSpareAServer() const {
  return training_.begun() && state_.phase == Phase::kRunning &&
         settings_.min_in_sync < settings_.copies && placement_.copies().HasAllCopies();
}

std::string JobController::AddressOf(SlotId id) const {
  return processes_.IsRunning(id) ? processes_.At(id).address : "";
}

}  // namespace adamant::controller
