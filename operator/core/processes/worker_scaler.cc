#include "operator/core/processes/worker_scaler.h"

#include <span>

namespace adamant::controller {

void WorkerScaler::AddWorkers(TimePoint now) {
  const std::size_t first = SlotIndex(settings_, {Role::kWorker, 0});
  const std::size_t end = first + settings_.workers;
  const bool begun = first < processes_.slots().size() &&
                     processes_.slots()[first].liveness != ProcessTable::Liveness::kAbsent;
  while (processes_.slots().size() < end) {
    processes_.AddSlot();
  }
  const std::span<ProcessTable::Slot> slots = processes_.slots();
  for (std::size_t i = first; begun && i < end; ++i) {
    if (slots[i].liveness == ProcessTable::Liveness::kAbsent) {
      slots[i].WaitUntil(now);
    }
  }
}

std::vector<SlotId> WorkerScaler::DismissWorkers(TimePoint now) {
  std::vector<SlotId> gone;
  for (ProcessTable::Slot& slot : processes_.slots()) {
    if (!processes_.IsSurplus(slot.id) || slot.leaving) {
      continue;
    }
    if (slot.liveness == ProcessTable::Liveness::kRunning) {
      slot.leaving = true;
      slot.deadline = now + kLeaveTimeout;
      processes_.Conclude(slot.id);
      processes_.SendTo(slot.id, Stop{"the job has fewer workers now"});
    } else if (slot.liveness != ProcessTable::Liveness::kAbsent) {
      if (slot.liveness == ProcessTable::Liveness::kStarting) {
        processes_.Kill(slot);
      }
      processes_.Vacate(slot, now);
      gone.push_back(slot.id);
    }
  }
  return gone;
}

}  // namespace adamant::controller
