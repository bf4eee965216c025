#include "operator/core/training/going_back.h"

#include <algorithm>
#include <utility>

#include "operator/core/diagnosis/recovery.h"
#include "services/common/base/counted.h"
#include "services/common/base/failpoint.h"

namespace adamant::controller {
namespace {

/// "; 70 updates, of 90 counted examples, are undone", without what is 0.
std::string UndoneText(std::uint64_t updates, std::uint64_t examples) {
  if (updates == 0 && examples == 0) {
    return "";
  }
  const std::string counted = Counted(examples, "counted example");
  if (updates == 0) {
    return "; " + counted + (examples == 1 ? " is" : " are") + " undone";
  }
  return "; " + Counted(updates, "update") + (examples > 0 ? ", of " + counted + "," : "") +
         (updates == 1 ? " is" : " are") + " undone";
}

}  // namespace

GoingBack::GoingBack(const JobSettings& settings,
                     JobState& state,
                     Outbox& outbox,
                     ProcessTable& processes,
                     Placement& placement,
                     EpochSequence& sequence,
                     TrainingMeter& meter,
                     DivergenceWatch& watch)
    : settings_(settings),
      state_(state),
      outbox_(outbox),
      restart_(processes),
      placement_(placement),
      sequence_(sequence),
      meter_(meter),
      watch_(watch) {}

bool GoingBack::Resume() {
  const OnDivergence::Action action = settings_.on_divergence.action;
  const bool goes_back = std::exchange(state_.recovery.ended_diverged, false) &&
                         action != OnDivergence::Action::kContinue;
  if (goes_back) {
    const bool halves = action == OnDivergence::Action::kRecover;  // else it is as it was asked for
    TurnBack(state_, state_.row.counted, halves ? kRateOfNextAttempt : 1);
  }
  state_.recovery.times = 0;
  return goes_back;
}

void GoingBack::TellResumed() {
  outbox_.Tell(Note::Kind::kWentBack,
               state_.epoch,
               "training had diverged: the job goes back to " + WhereTo(state_) +
                   " and on as attempt " + std::to_string(state_.recovery.attempt) + ", at " +
                   RateOf(settings_, state_));
}

void GoingBack::Begin(const std::vector<StartProcess>& running, TimePoint now) {
  restart_.EndKnown(running, now);
  ending_ = !restart_.AllEnded();
}

absl::Status GoingBack::OnDiverged(DataEpoch epoch, const std::string& found, TimePoint now) {
  if (state_.step == Step::kFirstWeights || state_.step == Step::kExporting) {
    return absl::OkStatus();  // nothing is trained, or it has been judged
  }
  state_.recovery.divergence = found;
  outbox_.StateChanged();
  if (std::exchange(told_epoch_, epoch) != epoch) {
    outbox_.Tell(Note::Kind::kDiverged, epoch, found);
  }
  if (settings_.on_divergence.action == OnDivergence::Action::kContinue) {
    return absl::OkStatus();
  }
  if (MayGoBack(settings_, state_)) {
    GoBack(now);
    return absl::OkStatus();
  }
  state_.recovery.ended_diverged = true;
  return absl::AbortedError(DivergenceFailure(settings_, state_, found));
}

void GoingBack::GoBack(TimePoint now) {
  ADAMANT_FAILPOINT("recovery/go_back");
  const Recovery& recovery = state_.recovery;
  const std::uint64_t updates = recovery.undone_updates;
  const std::uint64_t examples = recovery.undone_examples;
  TurnBack(state_, std::max(meter_.counted(), state_.row.counted), kRateOfNextAttempt);
  outbox_.Tell(
      Note::Kind::kWentBack,
      state_.epoch,
      "the job goes back to " + WhereTo(state_) + " and on as attempt " +
          std::to_string(recovery.attempt) + ", at " + RateOf(settings_, state_) +
          UndoneText(recovery.undone_updates - updates, recovery.undone_examples - examples));
  outbox_.Add(ManifestOf(state_));
  EndAll(now);
}

absl::Status GoingBack::OnLostBucket(const absl::Status& why, TimePoint now) {
  if (state_.recovery.going_back) {
    return FallBackFurther(why, now);
  }
  const Recovery before = state_.recovery;
  const bool returns = settings_.only_checkpoints || absl::IsAborted(why);
  if (!returns || !ReturnToCheckpoint(state_, std::max(meter_.counted(), state_.row.counted))) {
    return {why.code(), placement_.checkpoint_return().WhatHelps(why)};
  }
  const Recovery& recovery = state_.recovery;
  outbox_.StateChanged();
  outbox_.Tell(Note::Kind::kWentBack,
               state_.epoch,
               std::string(why.message()) + "; the job goes back to " + WhereTo(state_) +
                   " and on as attempt " + std::to_string(recovery.attempt) +
                   UndoneText(recovery.undone_updates - before.undone_updates,
                              recovery.undone_examples - before.undone_examples));
  outbox_.Add(ManifestOf(state_));
  EndAll(now);
  return absl::OkStatus();
}

// What processes hold of the model that cannot be read goes with them.
absl::Status GoingBack::FallBackFurther(const absl::Status& why, TimePoint now) {
  const std::uint64_t lost = state_.checkpoint.snapshot;
  const std::uint64_t updates = state_.recovery.undone_updates;
  const std::uint64_t examples = state_.recovery.undone_examples;
  if (!FallBack(state_)) {
    return why;
  }
  outbox_.StateChanged();
  outbox_.Tell(Note::Kind::kWentBack,
               state_.epoch,
               "checkpoint " + std::to_string(lost) + " cannot be restored: the job goes back to " +
                   WhereTo(state_) +
                   UndoneText(state_.recovery.undone_updates - updates,
                              state_.recovery.undone_examples - examples) +
                   " (" + std::string(why.message()) + ")");
  outbox_.Add(ManifestOf(state_));
  EndAll(now);
  return absl::OkStatus();
}

void GoingBack::OnServerLost(TimePoint now) {
  if (placement_.checkpoint_return().went_back()) {
    EndAll(now);
  }
}

void GoingBack::OnBegun() {
  if (std::exchange(state_.recovery.going_back, false)) {
    ADAMANT_FAILPOINT("recovery/gone_back");
    outbox_.StateChanged();
  }
}

// Whatever processes queue, retain or have on its way belongs to what is undone.
void GoingBack::EndAll(TimePoint now) {
  ending_ = true;
  told_epoch_ = 0;
  sequence_.Abandon();
  meter_ = TrainingMeter(state_);
  watch_.Restart();
  restart_.EndAll(now);
  for (std::uint32_t server = 0; server < settings_.parameter_servers; ++server) {
    placement_.OnLost(server, now);
  }
  placement_.OnGoingBack();
}

}  // namespace adamant::controller
