#include "operator/core/processes/process_table.h"

#include <algorithm>

namespace adamant::controller {

ProcessTable::ProcessTable(const JobSettings& settings, JobState& state, Outbox& outbox)
    : settings_(settings), state_(state), outbox_(outbox), slots_(state.slots.size()) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].id = SlotAt(settings, i);
  }
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

void ProcessTable::Vacate(Slot& slot, TimePoint now) {
  Retire(slot);
  Conclude(slot.id);
  if (!IsSurplus(slot.id)) {
    slot.WaitUntil(now);
  }
}

void ProcessTable::Conclude(SlotId id) {
  SlotRecord& record = Record(id);
  record.concluded = record.generation;
  outbox_.StateChanged();
}

void ProcessTable::AddSlot() {
  Slot& slot = slots_.emplace_back();
  slot.id = SlotAt(settings_, slots_.size() - 1);
  slot.exited = true;
  state_.slots.emplace_back();
  outbox_.StateChanged();
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

void ProcessTable::Kill(const Slot& slot) {
  outbox_.Add(KillProcess{.id = slot.id, .generation = GenerationOf(slot.id)});
}

bool ProcessTable::MayPush(const Slot& slot) const {
  return slot.liveness == Liveness::kRunning ||
         (slot.liveness == Liveness::kStarting && Record(slot.id).joined != 0);
}

std::vector<StartProcess> ProcessTable::AwaitedEnds() const {
  std::vector<StartProcess> awaited;
  for (const Slot& slot : slots_) {
    if (slot.liveness == Liveness::kWaiting && !slot.exited) {
      awaited.push_back({.id = slot.id, .generation = GenerationOf(slot.id)});
    }
  }
  return awaited;
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

void ProcessTable::ForEachRunning(Role role, const std::function<void(SlotId id)>& visit) const {
  for (const Slot& slot : slots_) {
    if (slot.id.role == role && slot.liveness == Liveness::kRunning) {
      visit(slot.id);
    }
  }
}

}  // namespace adamant::controller
