#include <string>
#include <utility>

#include "operator/core/job/job_controller.h"
#include "operator/core/state/number_text.h"

// Who is lost, and who is not needed any more.
namespace adamant::controller {
void JobController::OnProcessExited(const ProcessExited& event, TimePoint now) {
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
  if (IsFinal(state_.phase)) {
    return roster_.Retire(slot);
  }
  if (slot.leaving) {
    return OnLeft(slot, now);
  }
  if (slot.liveness != Roster::Liveness::kWaiting) {
    OnLost(slot,
           {.how = event.how,
            .cause = event.cause,
            .exit_code = event.exit_code,
            .bad_configuration = event.bad_configuration,
            // What has run before may run again once others have given back what it lacks.
            .cannot_run = event.cannot_run && !slot.has_run,
            .reason = event.reason,
            .intended = event.moves},
           now);
  } else if (slot.loss && event.cause == LossCause::kNodeLost) {  // why it was silent
    slot.loss = Loss{
        .how = event.how, .cause = event.cause, .reason = event.reason, .intended = event.moves};
  }
  if (slot.loss && !IsFinal(state_.phase)) {
    FailOnLoss(roster_.Conclude(slot));
  }
}

// A server's disk may be bound to the node that is lost with it. Where it is needed, the next
// process waits for it all the same; for one that was deleted nobody can wait. What the empty one
// lacks comes from other copies; a bucket of which there is none is lost as with any lost disk.
// Those copies go on without it: not in a job that has ended or is suspended.
void JobController::LeaveVolume(const ProcessExited& event) {
  if (event.id.role != Role::kParameterServer) {
    return;
  }
  const bool may_leave = event.moves || event.cause == LossCause::kNodeLost;
  const bool leaves = may_leave && !IsFinal(state_.phase) && !state_.recovery.going_back &&
                      !placement_.NeedsDiskOf(event.id.slot);
  if (leaves || event.volume_deleted) {
    roster_.TakeNewVolume(event.id);
  }
}

bool JobController::CanSpareAServer() const {
  return ready_ && state_.phase == Phase::kRunning && settings_.min_in_sync < settings_.copies &&
         placement_.HasAllCopies();
}

void JobController::OnLost(Roster::Slot& slot, Loss loss, TimePoint now) {
  roster_.Lose(slot, std::move(loss), now);
  ForgetMember(slot.id, now);
  PublishMembers(now);
}

void JobController::ForgetMember(MemberId id, TimePoint now) {
  alarms_.Forget(id);
  switch (id.role) {
    case Role::kParameterServer:
      placement_.OnLost(id.slot, now);
      going_back_.OnServerLost(now);
      return StopIfEnding();
    case Role::kDataServer:
      meter_.OnDataServerLost(id.slot);
      if (ready_) {
        sequence_.OnDataServerLost();
      }
      return;
    case Role::kWorker:
      placement_.OnWorkerLost();
      return sequence_.OnWorkerLost(id.slot);
  }
}

void JobController::LoseSilent(TimePoint now) {
  while (!IsFinal(state_.phase)) {
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
    OnLost(*silent,
           {.how = joined ? "was silent for " + SecondsText(settings_.silence_timeout)
                          : "did not join within " + SecondsText(settings_.join_timeout),
            .reason = LossReason::kUnresponsive},
           now);
  }
}

void JobController::LoseIfHung(Roster::Slot& slot, double busy_seconds, TimePoint now) {
  if (slot.leaving || std::chrono::duration<double>(busy_seconds) < settings_.hang_timeout) {
    return;
  }
  roster_.Kill(slot);
  OnLost(slot,
         {.how = "made no progress for " + SecondsText(settings_.hang_timeout),
          .reason = LossReason::kUnresponsive},
         now);
}

// --- Workers that come and go

void JobController::Scale(std::uint32_t workers, TimePoint now) {
  if (IsFinal(state_.phase) || workers == settings_.workers) {
    return;
  }
  outbox_.Tell(Note::Kind::kScaled,
               state_.epoch,
               "the job has " + std::to_string(workers) + (workers == 1 ? " worker" : " workers") +
                   " now, " + std::to_string(settings_.workers) + " before");
  settings_.workers = workers;
  roster_.AddWorkers(now);
  for (const MemberId id : roster_.DismissWorkers(now)) {
    ForgetMember(id, now);
  }
}

void JobController::OnLeft(Roster::Slot& slot, TimePoint now) {
  roster_.OnLeft(slot, now);
  ForgetMember(slot.id, now);
  PublishMembers(now);
}

}  // namespace adamant::controller
