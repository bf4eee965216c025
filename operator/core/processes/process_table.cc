#include "operator/core/processes/process_table.h"

#include <algorithm>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::controller {
namespace {

// The wait before a slot's next process after so many losses.
std::chrono::milliseconds WaitAfter(std::chrono::milliseconds first, std::uint32_t losses) {
  return losses == 0 ? std::chrono::milliseconds(0) : RestartDelay(first, losses - 1);
}

// The end of a process tells them, too, where it was its last line.
std::string LastWords(const ProcessTable::Slot& slot, const ProcessLoss& loss) {
  return slot.last_words.empty() || loss.how.find(slot.last_words) != std::string::npos
             ? ""
             : "; " + slot.last_words;
}

}  // namespace

ProcessTable::ProcessTable(const JobSettings& settings, JobState& state, Outbox& outbox)
    : settings_(settings), state_(state), outbox_(outbox), slots_(state.slots.size()) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].id = SlotAt(settings, i);
  }
}

void ProcessTable::StartRole(Role role, std::span<const StartProcess> known, TimePoint now) {
  for (Slot& slot : slots_) {
    if (slot.id.role != role) {
      continue;
    }
    if (IsSurplus(slot.id)) {
      slot.exited = true;  // whatever is left of it is not expected any more
      continue;
    }
    const SlotRecord& record = Record(slot.id);
    const StartProcess last{.id = slot.id, .generation = record.generation};
    if (std::ranges::find(known, last) == known.end()) {
      Start(slot, now);
    } else if (record.concluded != record.generation) {
      Await(slot, now);
    } else {  // an earlier controller has judged its loss, but started no other
      slot.liveness = Liveness::kWaiting;
      slot.deadline = now + WaitAfter(settings_.restart_backoff, record.losses);
    }
  }
}

absl::Status ProcessTable::DecideGivenUp(std::span<const StartProcess> known) {
  for (Slot& slot : slots_) {
    const SlotRecord& record = Record(slot.id);
    const bool given_up =
        record.joined != 0 && record.uid.empty() && record.concluded < record.generation;
    const StartProcess last{.id = slot.id, .generation = record.generation};
    if (given_up && !IsSurplus(slot.id) && std::ranges::find(known, last) == known.end()) {
      slot.loss = ProcessLoss{.how = "was silent", .reason = LossReason::kUnresponsive};
      ADAMANT_RETURN_IF_ERROR(DecideRestart(slot));
    }
  }
  return absl::OkStatus();
}

void ProcessTable::Start(Slot& slot, TimePoint now) {
  SlotRecord& record = Record(slot.id);
  ++record.generation;
  record.joined = 0;
  outbox_.StateChanged();
  Await(slot, now);
  outbox_.Add(StartProcess{.id = slot.id, .generation = record.generation});
}

void ProcessTable::Await(Slot& slot, TimePoint now) {
  slot.liveness = Liveness::kStarting;
  slot.exited = false;
  slot.loading.clear();
  slot.last_words.clear();
  slot.deadline = now + settings_.join_timeout;
}

std::string ProcessTable::Objection(const Join& join) const {
  if (join.format_version != kFormatVersion) {
    return "this member speaks format version " + std::to_string(join.format_version) +
           ", the controller speaks " + std::to_string(kFormatVersion);
  }
  if (IsSurplus(join.id)) {
    return "the job has no " + ToString(join.id);
  }
  if (join.uid.empty()) {
    return "a member needs a uid";
  }
  const SlotRecord& record = Record(join.id);
  if (join.incarnation != 0 && (join.incarnation != record.incarnation || join.uid != record.uid)) {
    return ToString(join.id) + " incarnation " + std::to_string(join.incarnation) +
           " was given up; the slot is at " + std::to_string(record.incarnation);
  }
  // One that has joined is known by its incarnation: it may be all that is left of its slot.
  if (join.incarnation == 0 && join.generation < record.generation) {
    return ToString(join.id) + " was started as generation " + std::to_string(join.generation) +
           "; the slot is at " + std::to_string(record.generation);
  }
  return "";
}

ProcessTable::Joined ProcessTable::OnJoin(ConnectionId connection,
                                          const Join& join,
                                          TimePoint now) {
  if (const std::string objection = Objection(join); !objection.empty()) {
    outbox_.Add(Send{.connection = connection, .message = Refused{objection}});
    outbox_.Add(CloseConnection{connection});
    return Joined::kRefused;
  }
  Slot& slot = At(join.id);
  SlotRecord& record = Record(join.id);
  const bool same_process = record.uid == join.uid;
  const bool replaces = slot.liveness == Liveness::kRunning && !same_process;
  if (slot.connection != 0) {
    if (replaces) {
      outbox_.Add(Send{.connection = slot.connection,
                       .message = Refused{"another process has taken this slot"}});
    }
    outbox_.Add(CloseConnection{slot.connection});
  }
  if (!same_process) {
    ++record.incarnation;
    record.uid = join.uid;
    outbox_.StateChanged();
    outbox_.Tell(Note::Kind::kJoined,
                 join.id,
                 ToString(join.id) + " joined, incarnation " + std::to_string(record.incarnation));
  }
  // The end of a process that an earlier controller did not find, and replaced, would say nothing
  // of the one that is found after all.
  if (join.generation >= record.generation && record.joined != record.incarnation) {
    record.joined = record.incarnation;
    outbox_.StateChanged();
  }
  if (record.generation > 0 && record.concluded == record.generation) {
    --record.concluded;  // it was dismissed, and is wanted after all
    outbox_.StateChanged();
  }
  if (slot.liveness != Liveness::kRunning || !same_process) {
    slot.since = now;
  }
  slot.liveness = Liveness::kRunning;
  slot.has_run = true;
  slot.loss.reset();
  slot.connection = connection;
  slot.address = join.address;
  slot.metrics_address = join.metrics_address;
  slot.replication_address = join.replication_address;
  slot.node = join.node;
  slot.zone = join.zone;
  slot.deadline = now + (same_process ? settings_.silence_timeout : kLoadTimeout);
  slot.started = slot.started && same_process;
  return replaces ? Joined::kReplaced : Joined::kNew;
}

ProcessTable::Slot* ProcessTable::Find(ConnectionId connection) {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.liveness == Liveness::kRunning && slot.connection == connection;
  });
  return found == slots_.end() ? nullptr : &*found;
}

void ProcessTable::OnDisconnected(ConnectionId connection) {
  if (Slot* slot = Find(connection)) {
    slot->connection = 0;
  }
}

void ProcessTable::MarkLost(Slot& slot, ProcessLoss loss, TimePoint now) {
  if (slot.liveness == Liveness::kRunning) {
    Forgive(Record(slot.id).losses, now - slot.since);
  }
  Retire(slot);
  outbox_.Tell(Note::Kind::kLost, slot.id, ToString(slot.id) + " " + loss.how, loss.reason);
  slot.liveness = Liveness::kWaiting;
  slot.deadline = now;
  slot.loss = std::move(loss);
}

void ProcessTable::Forgive(std::uint32_t& losses, Clock::Duration ran) const {
  const auto first = settings_.restart_backoff;
  if (ran >= kRanWell * WaitAfter(first, losses)) {
    losses = 0;
  }
  while (losses > 0 && ran >= kCameUp * first && kShareOfRun * WaitAfter(first, losses + 1) > ran) {
    --losses;
  }
}

absl::Status ProcessTable::DecideRestart(Slot& slot) {
  const ProcessLoss loss = *std::exchange(slot.loss, std::nullopt);
  const Verdict verdict = Judge(settings_.failure_rules, slot.id.role, loss);
  const std::string name = ToString(slot.id);
  const std::string by = verdict.rule.empty() ? "" : " (" + verdict.rule + ")";
  const bool counted = verdict.action == LossAction::kRestart;
  if (verdict.action == LossAction::kFail) {
    return absl::FailedPreconditionError(name + " " + loss.how + ": " +
                                         (!by.empty()       ? verdict.rule + " fails the job"
                                          : loss.cannot_run ? "this machine does not let it run"
                                                            : "its configuration is refused"));
  }
  if (counted && state_.restarts >= settings_.restart_limit) {
    return absl::ResourceExhaustedError(name + " " + loss.how + by + " and the restart budget of " +
                                        std::to_string(settings_.restart_limit) +
                                        " is spent (spec.runPolicy.restartBudget.limit)" +
                                        LastWords(slot, loss));
  }
  state_.restarts += counted ? 1 : 0;
  Record(slot.id).concluded = Record(slot.id).generation;
  const auto delay = NextDelay(slot, !counted && loss.cause != LossCause::kExit);
  slot.deadline += delay;
  outbox_.StateChanged();
  outbox_.Tell(Note::Kind::kRestarting,
               slot.id,
               name + " starts again in " + std::to_string(delay.count()) + " ms, " +
                   (counted ? "restart " + std::to_string(state_.restarts) + " of " +
                                  std::to_string(settings_.restart_limit)
                            : "which does not count against the restart budget") +
                   by,
               loss.reason);
  return absl::OkStatus();
}

// One that was ended from outside starts at once, but not time and again.
std::chrono::milliseconds ProcessTable::NextDelay(Slot& slot, bool at_once) {
  const std::uint32_t losses = Record(slot.id).losses++;
  return WaitAfter(settings_.restart_backoff, at_once ? losses : losses + 1);
}

void ProcessTable::Retire(Slot& slot) {
  if (slot.connection != 0) {
    outbox_.Add(Send{.connection = slot.connection,
                     .message = Refused{ToString(slot.id) + " counts as lost"}});
    outbox_.Add(CloseConnection{slot.connection});
    slot.connection = 0;
  }
  Record(slot.id).uid.clear();
  outbox_.StateChanged();
  slot.liveness = Liveness::kAbsent;
  slot.leaving = false;
  slot.loss.reset();
}

void ProcessTable::EndAll(TimePoint now) {
  for (Slot& slot : slots_) {
    if (slot.liveness == Liveness::kWaiting && !slot.exited) {
      Kill(slot);
    }
    if (slot.liveness != Liveness::kStarting && slot.liveness != Liveness::kRunning) {
      continue;
    }
    Kill(slot);
    Release(slot);
    if (!IsSurplus(slot.id)) {
      Recall(slot, now);
    }
  }
}

bool ProcessTable::AllEnded() const {
  return std::ranges::all_of(
      slots_, [](const Slot& slot) { return slot.liveness != Liveness::kWaiting || slot.exited; });
}

void ProcessTable::EndKnown(std::span<const StartProcess> known, TimePoint now) {
  for (Slot& slot : slots_) {
    const StartProcess last{.id = slot.id, .generation = GenerationOf(slot.id)};
    slot.exited = std::ranges::find(known, last) == known.end();
    if (last.generation > 0) {
      Kill(slot);  // also one that is not known
    }
    Release(slot);
    if (!IsSurplus(slot.id)) {
      Recall(slot, now);
    }
  }
}

void ProcessTable::AddWorkers(TimePoint now) {
  const std::size_t first = SlotIndex(settings_, {Role::kWorker, 0});
  const std::size_t end = first + settings_.workers;
  const bool begun = first < slots_.size() && slots_[first].liveness != Liveness::kAbsent;
  while (slots_.size() < end) {
    Slot& slot = slots_.emplace_back();
    slot.id = SlotAt(settings_, slots_.size() - 1);
    slot.exited = true;
    state_.slots.emplace_back();
    outbox_.StateChanged();
  }
  for (std::size_t i = first; begun && i < end; ++i) {
    if (slots_[i].liveness == Liveness::kAbsent) {
      Recall(slots_[i], now);
    }
  }
}

void ProcessTable::Recall(Slot& slot, TimePoint now) {
  slot.liveness = Liveness::kWaiting;
  slot.deadline = now;
}

std::vector<SlotId> ProcessTable::DismissWorkers(TimePoint now) {
  std::vector<SlotId> gone;
  for (Slot& slot : slots_) {
    if (!IsSurplus(slot.id) || slot.leaving) {
      continue;
    }
    if (slot.liveness == Liveness::kRunning) {
      slot.leaving = true;
      slot.deadline = now + kLeaveTimeout;
      DecideRestart(Record(slot.id));
      SendTo(slot.id, Stop{"the job has fewer workers now"});
    } else if (slot.liveness != Liveness::kAbsent) {
      if (slot.liveness == Liveness::kStarting) {
        Kill(slot);
      }
      Release(slot);
      gone.push_back(slot.id);
    }
  }
  return gone;
}

// Its end is nothing to be judged, by no controller.
void ProcessTable::Release(Slot& slot) {
  Retire(slot);
  DecideRestart(Record(slot.id));
}

void ProcessTable::DecideRestart(SlotRecord& record) {
  record.concluded = record.generation;
  outbox_.StateChanged();
}

void ProcessTable::OnLeft(Slot& slot, TimePoint now) {
  Release(slot);
  if (!IsSurplus(slot.id)) {
    Recall(slot, now);
  }
}

std::uint64_t ProcessTable::OnExited(Slot& slot, std::uint64_t generation) {
  const SlotRecord& record = Record(slot.id);
  if (generation != record.generation) {
    return 0;
  }
  slot.exited = true;
  return record.joined;
}

void ProcessTable::TakeNewVolume(SlotId id) {
  ++Record(id).volume;
  outbox_.StateChanged();
}

void ProcessTable::OnWaiting(std::span<const StartProcess> processes, TimePoint now) {
  for (const StartProcess& process : processes) {
    if (!Has(process.id) || process.generation != Record(process.id).generation) {
      continue;
    }
    if (Slot& slot = At(process.id); slot.liveness == Liveness::kStarting) {
      slot.deadline = now + settings_.join_timeout;
    }
  }
}

void ProcessTable::GrantTime(TimePoint now) {
  for (Slot& slot : slots_) {
    if (slot.liveness == Liveness::kStarting || slot.liveness == Liveness::kRunning) {
      slot.deadline = std::max(slot.deadline, now + settings_.silence_timeout);
    }
  }
}

void ProcessTable::StartDue(TimePoint now) {
  for (Slot& slot : slots_) {
    if (slot.liveness == Liveness::kWaiting && slot.exited && slot.deadline <= now) {
      Start(slot, now);
    }
  }
}

ProcessTable::Slot* ProcessTable::FindSilent(TimePoint now) {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return (slot.liveness == Liveness::kStarting || slot.liveness == Liveness::kRunning) &&
           slot.deadline <= now;
  });
  return found == slots_.end() ? nullptr : &*found;
}

void ProcessTable::Kill(const Slot& slot) {
  outbox_.Add(KillProcess{.id = slot.id, .generation = GenerationOf(slot.id)});
}

std::optional<ProcessTable::TimePoint> ProcessTable::NextTimer() const {
  std::optional<TimePoint> next;
  for (const Slot& slot : slots_) {
    const bool planned = slot.liveness == Liveness::kStarting ||
                         slot.liveness == Liveness::kRunning ||
                         (slot.liveness == Liveness::kWaiting && slot.exited);
    if (planned && (!next || slot.deadline < *next)) {
      next = slot.deadline;
    }
  }
  return next;
}

bool ProcessTable::AllRunning(Role role) const {
  return std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.id.role != role || slot.liveness == Liveness::kRunning;
  });
}

bool ProcessTable::MayPush(const Slot& slot) const {
  return slot.liveness == Liveness::kRunning ||
         (slot.liveness == Liveness::kStarting && Record(slot.id).joined != 0);
}

std::vector<Incarnation> ProcessTable::WritersFrom() const {
  std::vector<Incarnation> from;
  for (const Slot& slot : slots_) {
    if (slot.id.role == Role::kWorker) {
      from.push_back(IncarnationOf(slot.id) + (MayPush(slot) ? 0 : 1));
    }
  }
  return from;
}

bool ProcessTable::AnyStarted(Role role) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.id.role == role && IsStarted(slot.id);
  });
}

void ProcessTable::SendTo(SlotId id, const ControllerMessage& message) {
  if (const Slot& slot = At(id); slot.connection != 0) {
    outbox_.Add(Send{.connection = slot.connection, .message = message});
  }
}

void ProcessTable::SendToAll(Role role, const ControllerMessage& message) {
  for (const Slot& slot : slots_) {
    if (slot.id.role == role) {
      SendTo(slot.id, message);
    }
  }
}

std::chrono::milliseconds RestartDelay(std::chrono::milliseconds first, std::uint32_t restarts) {
  auto delay = first;
  for (std::uint32_t i = 0; i < restarts && delay < ProcessTable::kLongestBackoff; ++i) {
    delay *= 2;
    if (delay.count() == 0) {
      break;
    }
  }
  return std::min(delay, ProcessTable::kLongestBackoff);
}

}  // namespace adamant::controller
