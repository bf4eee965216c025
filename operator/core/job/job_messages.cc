#include <string>

#include "operator/core/diagnosis/recovery.h"
#include "operator/core/job/job_controller.h"

// What members say.
namespace adamant::controller {
void JobController::OnReceived(const Received& event, TimePoint now) {
  if (const auto* join = std::get_if<Join>(&event.message)) {
    return OnJoin(event.connection, *join, now);
  }
  if (Roster::Slot* slot = roster_.Find(event.connection)) {
    if (const auto* loading = std::get_if<Loading>(&event.message)) {
      return Roster::Loads(*slot, loading->what, now);
    }
    roster_.Heard(*slot, now);
    OnMessage(*slot, event.message, now);
  }
}

void JobController::OnJoin(ConnectionId connection, const Join& join, TimePoint now) {
  if (join.generation > (roster_.Has(join.id) ? roster_.GenerationOf(join.id) : 0)) {
    // Another controller has started it, and replaced this one, which must not even stop it.
    outbox_.Add(CloseConnection{connection});
    return;
  }
  if (IsFinal(state_.phase)) {
    outbox_.Add(Send{.connection = connection, .message = Stop{state_.message}});
    outbox_.Add(CloseConnection{connection});
    return;
  }
  if (going_back_.ending()) {  // it is being ended
    outbox_.Add(Send{.connection = connection, .message = Refused{"the job goes back"}});
    outbox_.Add(CloseConnection{connection});
    return;
  }
  if (join.id.role != Role::kDataServer && TrainingExamples(settings_, state_) == 0) {
    // It asks again until it can be told how long the job is.
    roster_.OnWaiting({{{.id = join.id, .generation = join.generation}}}, now);
    outbox_.Add(CloseConnection{connection});
    return;
  }
  const Roster::Joined joined = roster_.OnJoin(connection, join, now);
  if (joined == Roster::Joined::kRefused) {
    return;
  }
  if (joined == Roster::Joined::kReplaced) {
    ForgetMember(join.id, now);
  }
  roster_.SendTo(
      join.id,
      Welcome{.term = state_.term,
              .incarnation = roster_.IncarnationOf(join.id),
              .job_uid = state_.job_uid,
              .training_examples = TrainingExamples(settings_, state_),
              .rate_factor = state_.recovery.rate_factor,
              .layer_factors = LayerFactors(state_.recovery),
              .attempt = state_.recovery.attempt,
              .schedule_epochs = state_.schedule_epochs,
              .data_files =
                  join.id.role == Role::kDataServer ? data_.Binding() : std::vector<DataFile>{}});
  if (join.id.role == Role::kParameterServer) {
    placement_.OnJoined();
  } else if (join.id.role == Role::kWorker && join.incarnation != 0) {
    meter_.OnRejoined(join.id.slot, join.incarnation);
  }
  PublishMembers(now);
  if (ready_) {
    sequence_.Repeat(join.id);
  }
}

void JobController::OnMessage(Roster::Slot& slot, const MemberMessage& message, TimePoint now) {
  if (IsFinal(state_.phase)) {
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
    OnServerMessage(slot.id.slot, message, now);
  }
  if (ready_) {  // else it answers an earlier controller; the step's command will be sent again
    OnEpochMessage(slot.id, message, now);
  }
}

// What is wrong with the manifest or its data has nothing to do with who has found it.
void JobController::OnFailure(MemberId from, const Failure& failure, TimePoint now) {
  if (failure.diverged) {
    return OnDiverged(failure.message, now);
  }
  const std::string text = ToString(from) + ": " + failure.message;
  outbox_.Tell(Note::Kind::kFailure, from, text);
  if (failure.fatal) {
    state_.invalid = failure.invalid;
    End(Phase::kFailed, failure.invalid ? failure.message : text);
  }
}

void JobController::OnData(MemberId from, const DataServerProgress& progress, TimePoint now) {
  FailOnData(data_.OnFiles(from, progress.data_files));
  if (progress.training_examples == 0 || IsFinal(state_.phase)) {
    return;
  }
  const absl::StatusOr<bool> is_new = data_.OnExamples(from, progress.training_examples);
  FailOnData(is_new.status());
  if (is_new.ok() && *is_new && !settings_.starts_together) {
    roster_.StartRole(Role::kParameterServer, {}, now);
    roster_.StartRole(Role::kWorker, {}, now);
  }
}

void JobController::FailOnData(const absl::Status& status) {
  if (!status.ok()) {
    state_.invalid = true;
    FailOn(status);
  }
}

// An incarnation is stored before it is given out. With an older state numbers of snapshots would
// be given out twice, and the model be one of two states at once.
void JobController::FailOnOldState(std::uint32_t server, const StoredBuckets& stored) {
  const MemberId id{Role::kParameterServer, server};
  const std::uint64_t incarnation = roster_.IncarnationOf(id);
  if (stored.previous_incarnation < incarnation) {
    return;
  }
  End(Phase::kFailed,
      "the stored state of the job is older than the disks of its parameter servers: that of " +
          ToString(id) + " was opened by incarnation " +
          std::to_string(stored.previous_incarnation) + ", and the state gives out " +
          std::to_string(incarnation) +
          ". It seems to have been put back from a backup: put back the newest state, or the disks "
          "of the same time",
      EndKind::kStateIsOld);
}

void JobController::OnServerMessage(std::uint32_t server,
                                    const MemberMessage& message,
                                    TimePoint now) {
  if (const auto* stored = std::get_if<StoredBuckets>(&message)) {
    alarms_.OnStored({Role::kParameterServer, server}, *stored);
    FailOnOldState(server, *stored);
    placement_.OnStored(server, *stored);
  } else if (const auto* proposals = std::get_if<Proposals>(&message)) {
    placement_.OnProposals(server, *proposals, now);
  } else if (const auto* served = std::get_if<BucketsReady>(&message)) {
    placement_.OnReady(server, *served);
  } else if (std::holds_alternative<Draining>(message)) {
    placement_.OnDraining(server);
  }
}

void JobController::OnEpochMessage(MemberId from, const MemberMessage& message, TimePoint now) {
  switch (from.role) {
    case Role::kParameterServer:
      if (const auto* taken = std::get_if<SnapshotTaken>(&message)) {
        FailOn(sequence_.OnSnapshotTaken(from.slot, *taken, now));
      }
      return;
    case Role::kDataServer:
      if (const auto* ended = std::get_if<EpochEnded>(&message)) {
        sequence_.OnEpochEnded(*ended);
      } else if (const auto* closed = std::get_if<PartClosed>(&message)) {
        sequence_.OnPartClosed(*closed);
      } else if (const auto* evaluated = std::get_if<Evaluated>(&message)) {
        if (const auto found = sequence_.OnEvaluated(*evaluated, now)) {
          OnDiverged(
              "training diverged in epoch " + std::to_string(evaluated->epoch) + ": " + *found,
              now);
        }
      }
      return;
    case Role::kWorker:
      if (const auto* flushed = std::get_if<WorkerFlushed>(&message)) {
        sequence_.OnWorkerFlushed(from.slot, *flushed);
      } else if (const auto* held = std::get_if<PushesHeld>(&message)) {
        sequence_.OnPushesHeld(from.slot, *held, now);
      }
      return;
  }
}

void JobController::OnHeartbeat(Roster::Slot& slot, const Heartbeat& heartbeat, TimePoint now) {
  const MemberId id = slot.id;
  if (const auto* worker = std::get_if<WorkerProgress>(&heartbeat.progress)) {
    meter_.OnWorker(id.slot, roster_.IncarnationOf(id), *worker, now);
    if (const auto found = watch_.OnWorker(*worker, now); found && ready_) {
      return OnDiverged(
          "training diverged in epoch " + std::to_string(state_.epoch) + ": " + *found, now);
    }
  } else if (const auto* data = std::get_if<DataServerProgress>(&heartbeat.progress)) {
    meter_.OnDataServer(id.slot, *data, now);
    OnData(id, *data, now);
    if (ready_) {
      if (state_.part_owner.front() == id.slot) {
        sequence_.Adopt(*data, now);
      }
    }
  } else if (const auto* server = std::get_if<ParameterServerProgress>(&heartbeat.progress)) {
    placement_.OnProgress(id.slot, *server);
    OnAlarm(id, server->alarm, now);
    alarms_.OnDamages(id, server->damages);
  }
  LoseIfHung(slot, heartbeat.busy_seconds, now);
}

void JobController::OnAlarm(MemberId id, const std::string& alarm, TimePoint now) {
  const bool counting = ready_ && (state_.step == Step::kTraining || state_.step == Step::kClosing);
  std::string why = alarms_.OnAlarm(
      id, alarm, {.begun = ready_, .counting = counting, .counted = meter_.counted()}, now);
  if (!why.empty()) {
    End(Phase::kFailed, std::move(why));
  }
}

}  // namespace adamant::controller
