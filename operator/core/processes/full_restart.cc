#include "operator/core/processes/full_restart.h"

#include <algorithm>

namespace adamant::controller {

void FullRestart::EndAll(TimePoint now) {
  for (ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.liveness == ProcessTable::Liveness::kWaiting && !slot.exited) {
      processes_.Kill(slot);
    }
    if (slot.liveness != ProcessTable::Liveness::kStarting &&
        slot.liveness != ProcessTable::Liveness::kRunning) {
      continue;
    }
    processes_.Kill(slot);
    processes_.Vacate(slot, now);
  }
}

void FullRestart::EndKnown(std::span<const StartProcess> known, TimePoint now) {
  for (ProcessTable::Slot& slot : processes_.slots()) {
    const StartProcess last{.id = slot.id, .generation = processes_.GenerationOf(slot.id)};
    slot.exited = std::ranges::find(known, last) == known.end();
    if (last.generation > 0) {
      processes_.Kill(slot);  // also one that is not known
    }
    processes_.Vacate(slot, now);
  }
}

bool FullRestart::AllEnded() const {
  return std::ranges::all_of(processes_.slots(), [](const ProcessTable::Slot& slot) {
    return slot.liveness != ProcessTable::Liveness::kWaiting || slot.exited;
  });
}

}  // namespace adamant::controller
