#include <algorithm>
#include <string>

#include "operator/core/diagnosis/recovery.h"
#include "operator/core/job/job_controller.h"

// What members say.
namespace adamant::controller {
namespace {

constexpr std::size_t kMostDataFiles = 4;  // images and labels, to train and to validate

}  // namespace

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
                  join.id.role == Role::kDataServer ? BindingFiles() : std::vector<DataFile>{}});
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

// All count the same data, so one of them is enough to go on.
void JobController::OnExamplesCounted(MemberId from, std::uint64_t examples, TimePoint now) {
  if (TrainingExamples(settings_, state_) == 0) {
    state_.training_examples = examples;
    outbox_.StateChanged();
    if (!settings_.starts_together) {
      roster_.StartRole(Role::kParameterServer, {}, now);
      roster_.StartRole(Role::kWorker, {}, now);
    }
  } else if (examples == TrainingExamples(settings_, state_)) {
    if (state_.training_examples == 0) {  // the settings know it; who resumes the job compares
      state_.training_examples = examples;
      outbox_.StateChanged();
    }
  } else {
    state_.invalid = true;
    End(Phase::kFailed,
        "spec.data.train: " + ToString(from) + " has " + std::to_string(examples) +
            " examples, but the job began with " +
            std::to_string(TrainingExamples(settings_, state_)) +
            "; all data servers need the same files, and these must stay as they are");
  }
}

void JobController::AcceptOtherDataFiles() {
  for (const DataFile& file : state_.data_files) {
    replaceable_.insert(file.field);
  }
}

// Those that a data server must find as they are.
std::vector<DataFile> JobController::BindingFiles() const {
  std::vector<DataFile> files = state_.data_files;
  std::erase_if(files, [&](const DataFile& file) { return replaceable_.contains(file.field); });
  return files;
}

// One that was told the job's files has compared them itself; this is for those that began at once.
void JobController::OnDataFiles(MemberId from, const std::vector<DataFile>& files) {
  for (const DataFile& file : files) {
    const auto known = std::ranges::find(state_.data_files, file.field, &DataFile::field);
    if (replaceable_.erase(file.field) > 0) {
      known->fingerprint = file.fingerprint;
      outbox_.StateChanged();
    }
    if (known != state_.data_files.end() && known->fingerprint != file.fingerprint) {
      state_.invalid = true;
      return End(Phase::kFailed,
                 file.field + ": " + ToString(from) +
                     " reads another file than the job began with; all data servers need the same "
                     "files, and these must stay as they are");
    }
    if (known == state_.data_files.end() && state_.data_files.size() < kMostDataFiles) {
      state_.data_files.push_back(file);
      outbox_.StateChanged();
    }
  }
}

// Its buckets come from other copies, where there are any; its disk may be failing all the same.
// Each start of the server finds the same.
void JobController::TellDamage(MemberId server, const StoredBuckets& stored) {
  const auto first = std::ranges::find(stored.buckets, false, &StoredBucket::complete);
  if (first == stored.buckets.end() || damages_[server] == first->detail) {
    return;
  }
  damages_[server] = first->detail;
  const auto damaged = std::ranges::count(stored.buckets, false, &StoredBucket::complete);
  outbox_.Tell(Note::Kind::kAlarm,
               server,
               ToString(server) + ": " + std::to_string(damaged) +
                   (damaged == 1 ? " bucket on its disk is not used: "
                                 : " buckets on its disk are not used: ") +
                   first->detail);
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

// While it runs: what it holds is in memory, and in other copies.
void JobController::TellDamage(MemberId server, const std::vector<std::string>& damages) {
  for (const std::string& damage : damages) {
    if (told_damages_[server].insert(damage).second) {
      outbox_.Tell(
          Note::Kind::kAlarm, server, ToString(server) + ": its disk is damaged: " + damage);
    }
  }
}

void JobController::OnServerMessage(std::uint32_t server,
                                    const MemberMessage& message,
                                    TimePoint now) {
  if (const auto* stored = std::get_if<StoredBuckets>(&message)) {
    TellDamage({Role::kParameterServer, server}, *stored);
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
    OnDataFiles(id, data->data_files);
    if (data->training_examples > 0 && !IsFinal(state_.phase)) {
      OnExamplesCounted(id, data->training_examples, now);
    }
    if (ready_) {
      if (state_.part_owner.front() == id.slot) {
        sequence_.Adopt(*data, now);
      }
    }
  } else if (const auto* server = std::get_if<ParameterServerProgress>(&heartbeat.progress)) {
    placement_.OnProgress(id.slot, *server);
    OnAlarm(id, server->alarm, now);
    TellDamage(id, server->damages);
  }
  LoseIfHung(slot, heartbeat.busy_seconds, now);
}

void JobController::OnAlarm(MemberId id, const std::string& alarm, TimePoint now) {
  const std::string name = ToString(id) + ": ";
  if (alarm.empty()) {
    if (alarms_.erase(id) > 0) {
      outbox_.Tell(Note::Kind::kAlarm, id, name + "stores again");
    }
    return;
  }
  const bool counting = ready_ && (state_.step == Step::kTraining || state_.step == Step::kClosing);
  if (!counting || meter_.counted() != counted_) {
    counted_ = meter_.counted();
    last_progress_ = now;
  }
  const auto [raised, is_new] =
      alarms_.emplace(id, Alarm{.text = alarm, .since = now, .told = now});
  raised->second.text = alarm;
  if (!is_new && now - std::max(raised->second.since, last_progress_) >= kAlarmTimeout) {
    End(Phase::kFailed, name + alarm + "; nothing can be counted any more");
  } else if (is_new || now - raised->second.told >= kAlarmInterval) {
    raised->second.told = now;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(now - raised->second.since);
    outbox_.Tell(Note::Kind::kAlarm,
                 id,
                 name + alarm + (ready_ ? "; training goes on" : "; the job waits for room") +
                     (is_new ? "" : ", for " + std::to_string(seconds.count()) + " s now"));
  }
}

std::string JobController::AlarmOf(MemberId id) const {
  const auto found = alarms_.find(id);
  return found == alarms_.end() ? "" : found->second.text;
}

}  // namespace adamant::controller
