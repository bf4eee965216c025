#include "operator/core/job/departures.h"

#include <chrono>
#include <utility>

#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

Loss LossOf(const ProcessExited& event, bool has_run) {
  return {.how = event.how,
          .cause = event.cause,
          .exit_code = event.exit_code,
          .bad_configuration = event.bad_configuration,
          // What has run before may run again once others have given back what it lacks.
          .cannot_run = event.cannot_run && !has_run,
          .reason = event.reason,
          .intended = event.moves};
}

}  // namespace

void Departures::OnExited(const ProcessExited& event, TimePoint now) {
  if (!roster_.Has(event.id)) {
    return;
  }
  Roster::Slot& slot = roster_.At(event.id);
  const bool current = event.generation == roster_.GenerationOf(event.id);
  const bool news = current && !slot.exited;  // it may be repeated
  const std::uint64_t incarnation = roster_.OnExited(slot, event.generation);
  if (event.id.role == Role::kParameterServer && incarnation != 0 && event.proved) {
    placement_.OnExited({.slot = event.id.slot, .incarnation = incarnation});
  }
  if (news) {
    LeaveVolume(event);
  }
  if (!current || slot.liveness == Roster::Liveness::kAbsent) {
    return;
  }
  if (outcome_.IsDecided()) {
    return roster_.Retire(slot);
  }
  if (slot.leaving) {
    return OnLeft(slot, now);
  }
  if (slot.liveness != Roster::Liveness::kWaiting) {
    Lose(slot, LossOf(event, slot.has_run), now);
  } else if (slot.loss && event.cause == LossCause::kNodeLost) {  // why it was silent
    slot.loss = Loss{
        .how = event.how, .cause = event.cause, .reason = event.reason, .intended = event.moves};
  }
  if (slot.loss && !outcome_.IsDecided()) {
    outcome_.FailOnLoss(roster_.Conclude(slot));
  }
}

// A server's disk may be bound to the node that is lost with it. Where it is needed, the next
// process waits for it all the same; for one that was deleted nobody can wait. What the empty one
// lacks comes from other copies; a bucket of which there is none is lost as with any lost disk.
// Those copies go on without it: not in a job that has ended or is suspended.
void Departures::LeaveVolume(const ProcessExited& event) {
  if (event.id.role != Role::kParameterServer) {
    return;
  }
  const bool may_leave = event.moves || event.cause == LossCause::kNodeLost;
  const bool leaves = may_leave && !outcome_.IsDecided() && !state_.recovery.going_back &&
                      !placement_.NeedsDiskOf(event.id.slot);
  if (leaves || event.volume_deleted) {
    roster_.TakeNewVolume(event.id);
  }
}

void Departures::LoseSilent(TimePoint now) {
  while (!outcome_.IsDecided()) {
    Roster::Slot* silent = roster_.FindSilent(now);
    if (silent == nullptr) {
      return;
    }
    roster_.Kill(*silent);
    if (silent->leaving) {
      OnLeft(*silent, now);
      continue;
    }
    const bool joined = silent->liveness == Roster::Liveness::kRunning;
    Lose(*silent,
         {.how = joined ? "was silent for " + SecondsText(settings_.silence_timeout)
                        : "did not join within " + SecondsText(settings_.join_timeout),
          .reason = LossReason::kUnresponsive},
         now);
  }
}

void Departures::LoseIfHung(Roster::Slot& slot, double busy_seconds, TimePoint now) {
  if (slot.leaving || std::chrono::duration<double>(busy_seconds) < settings_.hang_timeout) {
    return;
  }
  roster_.Kill(slot);
  Lose(slot,
       {.how = "made no progress for " + SecondsText(settings_.hang_timeout),
        .reason = LossReason::kUnresponsive},
       now);
}

void Departures::Lose(Roster::Slot& slot, Loss loss, TimePoint now) {
  roster_.Lose(slot, std::move(loss), now);
  training_.OnLost(slot.id, now);
  training_.PublishMembers(now);
}

void Departures::OnLeft(Roster::Slot& slot, TimePoint now) {
  roster_.OnLeft(slot, now);
  training_.OnLost(slot.id, now);
  training_.PublishMembers(now);
}

}  // namespace adamant::controller
