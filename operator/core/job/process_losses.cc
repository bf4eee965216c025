#include "operator/core/job/process_losses.h"

#include <chrono>
#include <utility>

#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

ProcessLoss LossOf(const ProcessExited& event, bool has_run) {
  return {.how = event.how,
          .cause = event.cause,
          .exit_code = event.exit_code,
          .bad_configuration = event.bad_configuration,
          // What has run before may run again once others have given back what it lacks.
          .cannot_run = event.cannot_run && !has_run,
          .reason = event.reason,
          .intended = event.moves};
}

// By a process from before the last one that was asked for, until that one joins.
bool IsFilledByEarlier(const ProcessTable::Slot& slot, const SlotRecord& record) {
  return slot.liveness == ProcessTable::Liveness::kRunning && record.joined != record.incarnation;
}

}  // namespace

void ProcessLosses::OnExited(const ProcessExited& event, TimePoint now) {
  if (!processes_.Has(event.id)) {
    return;
  }
  ProcessTable::Slot& slot = processes_.At(event.id);
  const bool current = event.generation == processes_.GenerationOf(event.id);
  const bool news = current && !slot.exited;  // it may be repeated
  const Incarnation incarnation = processes_.OnExited(slot, event.generation);
  if (event.id.role == Role::kParameterServer && incarnation != 0 && event.proved) {
    placement_.OnExited({.slot = event.id.slot, .incarnation = incarnation});
  }
  if (news) {
    LeaveVolume(event);
  }
  if (!current || slot.liveness == ProcessTable::Liveness::kAbsent) {
    return;
  }
  if (outcome_.IsDecided()) {
    return processes_.Retire(slot);
  }
  if (slot.leaving) {
    return OnLeft(slot, now);
  }
  if (slot.liveness != ProcessTable::Liveness::kWaiting) {
    MarkLost(slot, LossOf(event, slot.has_run), now);
  } else if (slot.loss && event.cause == LossCause::kNodeLost) {  // why it was silent
    slot.loss = ProcessLoss{
        .how = event.how, .cause = event.cause, .reason = event.reason, .intended = event.moves};
  }
  if (slot.loss && !outcome_.IsDecided()) {
    outcome_.FailOnLoss(restarts_.DecideRestart(slot));
  }
}

// A server's disk may be bound to the node that is lost with it. Where it is needed, the next
// process waits for it all the same; for one that was deleted nobody can wait. What the empty one
// lacks comes from other copies; a bucket of which there is none is lost as with any lost disk.
// Those copies go on without it: not in a job that has ended or is suspended.
void ProcessLosses::LeaveVolume(const ProcessExited& event) {
  if (event.id.role != Role::kParameterServer) {
    return;
  }
  const bool may_leave = event.moves || event.cause == LossCause::kNodeLost;
  const bool leaves = may_leave && !outcome_.IsDecided() && !state_.recovery.going_back &&
                      !placement_.copies().NeedsDiskOf(event.id.slot);
  if (leaves || event.volume_deleted) {
    processes_.TakeNewVolume(event.id);
  }
}

void ProcessLosses::LoseSilent(TimePoint now) {
  while (!outcome_.IsDecided()) {
    ProcessTable::Slot* silent = silence_.FindSilent(now);
    if (silent == nullptr) {
      return;
    }
    if (silent->leaving) {
      processes_.Kill(*silent);
      OnLeft(*silent, now);
      continue;
    }
    const bool joined = silent->liveness == ProcessTable::Liveness::kRunning;
    GiveUp(*silent,
           {.how = joined ? "was silent for " + SecondsText(settings_.silence_timeout)
                          : "did not join within " + SecondsText(settings_.join_timeout),
            .reason = LossReason::kUnresponsive},
           now);
  }
}

void ProcessLosses::LoseIfHung(ProcessTable::Slot& slot, double busy_seconds, TimePoint now) {
  if (slot.leaving || std::chrono::duration<double>(busy_seconds) < settings_.hang_timeout) {
    return;
  }
  GiveUp(slot,
         {.how = "made no progress for " + SecondsText(settings_.hang_timeout),
          .reason = LossReason::kUnresponsive},
         now);
}

// The process that was asked for last has done nothing wrong where an earlier one filled its slot:
// it is waited for as before, be it only that it cannot be started yet.
void ProcessLosses::GiveUp(ProcessTable::Slot& slot, ProcessLoss loss, TimePoint now) {
  const bool next_is_awaited = IsFilledByEarlier(slot, processes_.Record(slot.id)) && !slot.exited;
  if (!next_is_awaited) {
    processes_.Kill(slot);
  }
  MarkLost(slot, std::move(loss), now);
  if (next_is_awaited) {
    slot.loss.reset();
    starter_.Await(slot, now);
  }
}

void ProcessLosses::MarkLost(ProcessTable::Slot& slot, ProcessLoss loss, TimePoint now) {
  restarts_.MarkLost(slot, std::move(loss), now);
  training_.OnLost(slot.id, now);
  training_.PublishMembers(now);
}

void ProcessLosses::OnLeft(ProcessTable::Slot& slot, TimePoint now) {
  processes_.Vacate(slot, now);
  training_.OnLost(slot.id, now);
  training_.PublishMembers(now);
}

}  // namespace adamant::controller
