#include "operator/core/state/sent_again.h"

#include <string>

#include "services/common/base/counted.h"

namespace adamant::controller {
namespace {

constexpr char kUncounted[] = "; what a worker had of it that has ended since is not counted";

std::string LostText(const RolledBack& fate) {
  return "at least " + Counted(fate.lost, "update") + (fate.lost == 1 ? " is" : " are") +
         " lost that all copies had and no disk: no worker could send " +
         (fate.lost == 1 ? "it" : "them") + " again" + (fate.worker_ended ? kUncounted : "");
}

/// What is to be told of it; "": nothing.
std::string FateText(const JobSettings& settings, const RolledBack& fate) {
  if (fate.lost > 0) {
    return LostText(fate);
  }
  if (settings.workers_retain) {
    return std::string(
               "all that was applied after the last flush, and lost with all copies, has "
               "been sent again") +
           (fate.worker_ended ? kUncounted : "");
  }
  return fate.updates == 0 ? ""
                           : Counted(fate.updates, "update") + " that all copies had and no disk " +
                                 (fate.updates == 1 ? "was" : "were") +
                                 " not sent again: workers keep none (retain: 0)";
}

}  // namespace

void CountRolledBack(JobState& state, std::uint64_t updates) {
  state.rolled_back.open = true;
  state.rolled_back.updates += updates;
}

void CountLost(JobState& state, std::uint64_t updates) {
  state.unrecorded_losses += updates;
  state.rolled_back.lost += state.rolled_back.open ? updates : 0;
}

void CountWorkerGone(JobState& state) { state.rolled_back.worker_ended = state.rolled_back.open; }

void TellSentAgain(const JobSettings& settings, JobState& state, Outbox& outbox) {
  const RolledBack& fate = state.rolled_back;
  // A worker that keeps nothing finds out when it next pushes or fetches.
  const bool known = settings.workers_retain || fate.lost > 0 || fate.worker_ended;
  if (!fate.open || !known) {
    return;
  }
  if (const std::string text = FateText(settings, fate); !text.empty()) {
    outbox.Tell(Note::Kind::kRestored, state.epoch, text);
  }
  state.rolled_back = {};
  outbox.StateChanged();
}

}  // namespace adamant::controller
