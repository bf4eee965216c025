#include "operator/core/processes/silence_watch.h"

#include <algorithm>
#include <utility>

namespace adamant::controller {

void SilenceWatch::OnHeartbeat(ProcessTable::Slot& slot, TimePoint now) const {
  slot.started = true;
  slot.loading.clear();
  slot.load_fails = false;
  if (!slot.leaving) {
    slot.deadline = now + settings_.silence_timeout;
  }
}

void SilenceWatch::OnLoading(ProcessTable::Slot& slot,
                             const Loading& loading,
                             TimePoint now) const {
  if (loading.fails != std::exchange(slot.load_fails, loading.fails)) {
    outbox_.Tell(Note::Kind::kAlarm,
                 slot.id,
                 ToString(slot.id) + (loading.fails ? ": " : " comes on again: ") + loading.what);
  }
  slot.loading = loading.what;
  slot.deadline = now + kLoadTimeout;
}

void SilenceWatch::GrantTime(TimePoint now) {
  for (ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.has_process()) {
      slot.deadline = std::max(slot.deadline, now + settings_.silence_timeout);
    }
  }
}

ProcessTable::Slot* SilenceWatch::FindSilent(TimePoint now) {
  for (ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.has_process() && slot.deadline <= now) {
      return &slot;
    }
  }
  return nullptr;
}

std::optional<SilenceWatch::TimePoint> SilenceWatch::NextTimer() const {
  std::optional<TimePoint> next;
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.has_process() && (!next || slot.deadline < *next)) {
      next = slot.deadline;
    }
  }
  return next;
}

}  // namespace adamant::controller
