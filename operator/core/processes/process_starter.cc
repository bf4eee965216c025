#include "operator/core/processes/process_starter.h"

#include <algorithm>

#include "operator/core/processes/restart_policy.h"

namespace adamant::controller {
namespace {

// Its last process has ended: the next starts once the wait is over.
bool MayStart(const ProcessTable::Slot& slot) {
  return slot.liveness == ProcessTable::Liveness::kWaiting && slot.exited;
}

}  // namespace

void ProcessStarter::StartRole(Role role, std::span<const StartProcess> known, TimePoint now) {
  for (ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.id.role != role) {
      continue;
    }
    if (processes_.IsSurplus(slot.id)) {
      slot.exited = true;  // whatever is left of it is not expected any more
      continue;
    }
    const SlotRecord& record = processes_.Record(slot.id);
    const StartProcess last{.id = slot.id, .generation = record.generation};
    if (std::ranges::find(known, last) == known.end()) {
      Start(slot, now);
    } else if (record.concluded != record.generation) {
      Await(slot, now);
    } else {  // an earlier controller has judged its loss, but started no other
      slot.WaitUntil(now + DelayAfterLosses(settings_.restart_backoff, record.losses));
    }
  }
}

void ProcessStarter::Start(ProcessTable::Slot& slot, TimePoint now) {
  SlotRecord& record = processes_.Record(slot.id);
  ++record.generation;
  record.joined = 0;
  outbox_.StateChanged();
  Await(slot, now);
  outbox_.Add(StartProcess{.id = slot.id, .generation = record.generation});
}

void ProcessStarter::Await(ProcessTable::Slot& slot, TimePoint now) const {
  slot.liveness = ProcessTable::Liveness::kStarting;
  slot.exited = false;
  slot.loading.clear();
  slot.load_fails = false;
  slot.last_words.clear();
  slot.deadline = now + settings_.join_timeout;
}

void ProcessStarter::StartDue(TimePoint now) {
  for (ProcessTable::Slot& slot : processes_.slots()) {
    if (MayStart(slot) && slot.deadline <= now) {
      Start(slot, now);
    }
  }
}

std::optional<ProcessStarter::TimePoint> ProcessStarter::NextTimer() const {
  std::optional<TimePoint> next;
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    if (MayStart(slot) && (!next || slot.deadline < *next)) {
      next = slot.deadline;
    }
  }
  return next;
}

}  // namespace adamant::controller
