#include "operator/core/reservations.h"

#include "operator/core/chance.h"
#include "operator/core/number_text.h"

namespace adamant::controller {
namespace {

std::string MissedTarget(const JobSettings& settings, const JobState& state) {
  return settings.target_accuracy && state.accuracy < *settings.target_accuracy
             ? "spec.runPolicy.targetAccuracy, " + NumberText(*settings.target_accuracy) +
                   ", was not reached: top-1 is " + NumberText(state.accuracy) + " after " +
                   std::to_string(state.epoch) + (state.epoch == 1 ? " epoch" : " epochs")
             : "";
}

}  // namespace

std::string ReservationsOf(const JobSettings& settings, const JobState& state) {
  const std::string missed = MissedTarget(settings, state);
  const std::string little =
      state.at_chance
          ? ""  // that ends a job as failed, with words of its own
          : LearnedLittle(state.row, state.recovery, settings.chance_loss, settings.hindrances);
  return missed + (missed.empty() || little.empty() ? "" : "; ") + little;
}

}  // namespace adamant::controller
