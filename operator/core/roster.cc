#include "operator/core/roster.h"

#include <algorithm>

namespace adamant::controller {

Roster::Roster(const JobSettings& settings, JobState& state, Outbox& outbox)
    : settings_(settings), state_(state), outbox_(outbox), slots_(state.slots.size()) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].id = SlotAt(settings, i);
  }
}

void Roster::StartAll(std::span<const StartProcess> running, TimePoint now) {
  for (Slot& slot : slots_) {
    const StartProcess last{.id = slot.id, .generation = Record(slot.id).generation};
    if (std::ranges::find(running, last) != running.end()) {
      Await(slot, now);
    } else {
      Start(slot, now);
    }
  }
}

void Roster::Start(Slot& slot, TimePoint now) {
  SlotRecord& record = Record(slot.id);
  ++record.generation;
  record.joined = 0;
  outbox_.StateChanged();
  Await(slot, now);
  outbox_.Add(StartProcess{.id = slot.id, .generation = record.generation});
}

void Roster::Await(Slot& slot, TimePoint now) {
  slot.liveness = Liveness::kStarting;
  slot.exited = false;
  slot.deadline = now + settings_.join_timeout;
}

std::string Roster::Objection(const Join& join) const {
  if (join.format_version != kFormatVersion) {
    return "this member speaks format version " + std::to_string(join.format_version) +
           ", the controller speaks " + std::to_string(kFormatVersion);
  }
  if (join.id.slot >= SlotCount(settings_, join.id.role)) {
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
  return "";
}

Roster::Joined Roster::OnJoin(ConnectionId connection, const Join& join, TimePoint now) {
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
  if (record.joined != record.incarnation) {
    record.joined = record.incarnation;
    outbox_.StateChanged();
  }
  slot.liveness = Liveness::kRunning;
  slot.connection = connection;
  slot.address = join.address;
  slot.metrics_address = join.metrics_address;
  slot.replication_address = join.replication_address;
  slot.node = join.node;
  slot.zone = join.zone;
  slot.deadline = now + (same_process ? kSilenceTimeout : kLoadTimeout);
  slot.started = slot.started && same_process;
  return replaces ? Joined::kReplaced : Joined::kNew;
}

Roster::Slot* Roster::Find(ConnectionId connection) {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.liveness == Liveness::kRunning && slot.connection == connection;
  });
  return found == slots_.end() ? nullptr : &*found;
}

void Roster::OnDisconnected(ConnectionId connection) {
  if (Slot* slot = Find(connection)) {
    slot->connection = 0;
  }
}

absl::Status Roster::Lose(Slot& slot, const std::string& why, bool counted, TimePoint now) {
  const std::string name = ToString(slot.id);
  Retire(slot);
  outbox_.Tell(Note::Kind::kLost, slot.id, name + " " + why);
  if (!counted) {
    slot.liveness = Liveness::kWaiting;
    slot.deadline = now;
    outbox_.Tell(Note::Kind::kRestarting,
                 slot.id,
                 name + " starts again, which does not count against the restart budget");
    return absl::OkStatus();
  }
  if (state_.restarts >= settings_.restart_limit) {
    return absl::ResourceExhaustedError(name + " " + why + " and the restart budget of " +
                                        std::to_string(settings_.restart_limit) +
                                        " is spent (spec.runPolicy.restartBudget.limit)");
  }
  SlotRecord& record = Record(slot.id);
  const auto delay = RestartDelay(settings_.restart_backoff, record.restarts);
  ++record.restarts;
  ++state_.restarts;
  slot.liveness = Liveness::kWaiting;
  slot.deadline = now + delay;
  outbox_.Tell(Note::Kind::kRestarting,
               slot.id,
               name + " starts again in " + std::to_string(delay.count()) + " ms, restart " +
                   std::to_string(state_.restarts) + " of " +
                   std::to_string(settings_.restart_limit));
  return absl::OkStatus();
}

void Roster::Retire(Slot& slot) {
  if (slot.connection != 0) {
    outbox_.Add(Send{.connection = slot.connection,
                     .message = Refused{ToString(slot.id) + " counts as lost"}});
    outbox_.Add(CloseConnection{slot.connection});
    slot.connection = 0;
  }
  Record(slot.id).uid.clear();
  outbox_.StateChanged();
  slot.liveness = Liveness::kAbsent;
}

std::uint64_t Roster::OnExited(Slot& slot, std::uint64_t generation) {
  const SlotRecord& record = Record(slot.id);
  if (generation != record.generation) {
    return 0;
  }
  slot.exited = true;
  return record.joined;
}

void Roster::GrantTime(TimePoint now) {
  for (Slot& slot : slots_) {
    if (slot.liveness == Liveness::kStarting || slot.liveness == Liveness::kRunning) {
      slot.deadline = std::max(slot.deadline, now + kSilenceTimeout);
    }
  }
}

void Roster::StartDue(TimePoint now) {
  for (Slot& slot : slots_) {
    if (slot.liveness == Liveness::kWaiting && slot.exited && slot.deadline <= now) {
      Start(slot, now);
    }
  }
}

Roster::Slot* Roster::FindSilent(TimePoint now) {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return (slot.liveness == Liveness::kStarting || slot.liveness == Liveness::kRunning) &&
           slot.deadline <= now;
  });
  return found == slots_.end() ? nullptr : &*found;
}

void Roster::Kill(const Slot& slot) {
  outbox_.Add(KillProcess{.id = slot.id, .generation = GenerationOf(slot.id)});
}

std::optional<Roster::TimePoint> Roster::NextTimer() const {
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

bool Roster::AllRunning(Role role) const {
  return std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.id.role != role || slot.liveness == Liveness::kRunning;
  });
}

bool Roster::AnyStarted(Role role) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.id.role == role && IsStarted(slot.id);
  });
}

void Roster::SendTo(MemberId id, const ControllerMessage& message) {
  if (const Slot& slot = At(id); slot.connection != 0) {
    outbox_.Add(Send{.connection = slot.connection, .message = message});
  }
}

void Roster::SendToAll(Role role, const ControllerMessage& message) {
  for (const Slot& slot : slots_) {
    if (slot.id.role == role) {
      SendTo(slot.id, message);
    }
  }
}

std::chrono::milliseconds RestartDelay(std::chrono::milliseconds first, std::uint32_t restarts) {
  auto delay = first;
  for (std::uint32_t i = 0; i < restarts && delay < Roster::kLongestBackoff; ++i) {
    delay *= 2;
    if (delay.count() == 0) {
      break;
    }
  }
  return std::min(delay, Roster::kLongestBackoff);
}

}  // namespace adamant::controller
