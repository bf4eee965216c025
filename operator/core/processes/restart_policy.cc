#include "operator/core/processes/restart_policy.h"

#include <algorithm>
#include <string>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::controller {
namespace {

// The end of a process tells them, too, where it was its last line.
std::string LastWords(const ProcessTable::Slot& slot, const ProcessLoss& loss) {
  return slot.last_words.empty() || loss.how.find(slot.last_words) != std::string::npos
             ? ""
             : "; " + slot.last_words;
}

}  // namespace

absl::Status RestartPolicy::DecideGivenUp(std::span<const StartProcess> known) {
  for (ProcessTable::Slot& slot : processes_.slots()) {
    const SlotRecord& record = processes_.Record(slot.id);
    const bool given_up =
        record.joined != 0 && record.uid.empty() && record.concluded < record.generation;
    const StartProcess last{.id = slot.id, .generation = record.generation};
    if (given_up && !processes_.IsSurplus(slot.id) &&
        std::ranges::find(known, last) == known.end()) {
      slot.loss = ProcessLoss{.how = "was silent", .reason = LossReason::kUnresponsive};
      ADAMANT_RETURN_IF_ERROR(DecideRestart(slot));
    }
  }
  return absl::OkStatus();
}

void RestartPolicy::MarkLost(ProcessTable::Slot& slot, ProcessLoss loss, TimePoint now) {
  if (slot.liveness == ProcessTable::Liveness::kRunning) {
    Forgive(processes_.Record(slot.id).losses, now - slot.since);
  }
  processes_.Retire(slot);
  outbox_.Tell(Note::Kind::kLost, slot.id, ToString(slot.id) + " " + loss.how, loss.reason);
  slot.WaitUntil(now);
  slot.loss = std::move(loss);
}

// Takes of the losses before what a process has made good that ran for so long.
void RestartPolicy::Forgive(std::uint32_t& losses, Clock::Duration ran) const {
  const auto first = settings_.restart_backoff;
  if (ran >= kRanWell * DelayAfterLosses(first, losses)) {
    losses = 0;
  }
  while (losses > 0 && ran >= kCameUp * first &&
         kShareOfRun * DelayAfterLosses(first, losses + 1) > ran) {
    --losses;
  }
}

absl::Status RestartPolicy::DecideRestart(ProcessTable::Slot& slot) {
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
  processes_.Conclude(slot.id);
  const auto delay = NextDelay(slot.id, !counted && loss.cause != LossCause::kExit);
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
std::chrono::milliseconds RestartPolicy::NextDelay(SlotId id, bool at_once) {
  const std::uint32_t losses = processes_.Record(id).losses++;
  return DelayAfterLosses(settings_.restart_backoff, at_once ? losses : losses + 1);
}

std::chrono::milliseconds RestartDelay(std::chrono::milliseconds first, std::uint32_t restarts) {
  auto delay = first;
  for (std::uint32_t i = 0; i < restarts && delay < RestartPolicy::kLongestBackoff; ++i) {
    delay *= 2;
    if (delay.count() == 0) {
      break;
    }
  }
  return std::min(delay, RestartPolicy::kLongestBackoff);
}

std::chrono::milliseconds DelayAfterLosses(std::chrono::milliseconds first, std::uint32_t losses) {
  return losses == 0 ? std::chrono::milliseconds(0) : RestartDelay(first, losses - 1);
}

}  // namespace adamant::controller
