#include <algorithm>
#include <string>
#include <utility>

#include "operator/core/job_controller.h"
#include "operator/core/recovery.h"

// What follows when training diverges.
namespace adamant::controller {

void JobController::OnDiverged(const std::string& found, TimePoint now) {
  const bool trains = state_.step != Step::kFirstWeights && state_.step != Step::kExporting;
  if (IsFinal(state_.phase) || !ready_ || !trains) {
    return;  // it is of what has been undone, or has been judged
  }
  state_.recovery.divergence = found;
  outbox_.StateChanged();
  if (std::exchange(told_diverged_, state_.epoch) != state_.epoch) {
    outbox_.Tell(Note::Kind::kDiverged, state_.epoch, found);
  }
  if (settings_.on_divergence.action == OnDivergence::Action::kContinue) {
    return;
  }
  if (MayGoBack(settings_, state_)) {
    return GoBack(now);
  }
  state_.recovery.ended_diverged = settings_.on_divergence.action == OnDivergence::Action::kRecover;
  End(Phase::kFailed, DivergenceFailure(settings_, state_, found));
}

void JobController::GoBack(TimePoint now) {
  const Recovery& recovery = state_.recovery;
  const std::uint64_t updates = recovery.undone_updates;
  const std::uint64_t examples = recovery.undone_examples;
  TurnBack(state_, std::max(meter_.counted(), state_.row.counted));
  const std::string where = state_.epoch > 1
                                ? "the model of epoch " + std::to_string(state_.epoch - 1)
                                : std::string("its first weights");
  outbox_.Tell(Note::Kind::kWentBack,
               state_.epoch,
               "the job goes back to " + where + " (checkpoint " +
                   std::to_string(state_.checkpoint.snapshot) + ") and on as attempt " +
                   std::to_string(recovery.attempt) + ", at " + RateOf(settings_, state_) + "; " +
                   std::to_string(recovery.undone_updates - updates) + " updates, of " +
                   std::to_string(recovery.undone_examples - examples) +
                   " counted examples, are undone");
  if (HasCheckpoint(state_)) {
    outbox_.Add(WriteManifest{.checkpoint = state_.checkpoint, .keep = state_.evaluated_snapshot});
  }
  EndAll(now);
}

// Whatever processes queue, retain or have on its way belongs to what is undone.
void JobController::EndAll(TimePoint now) {
  ready_ = false;
  ending_ = true;
  told_diverged_ = 0;
  alarms_.clear();
  sequence_.Abandon();
  meter_ = TrainingMeter();
  watch_.Restart();
  roster_.EndAll(now);
  for (std::uint32_t server = 0; server < settings_.parameter_servers; ++server) {
    placement_.OnLost(server, now);
  }
  placement_.OnGoingBack();
}

}  // namespace adamant::controller
