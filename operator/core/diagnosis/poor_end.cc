#include "operator/core/diagnosis/poor_end.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "operator/core/diagnosis/advice.h"
#include "operator/core/diagnosis/chance.h"
#include "operator/core/diagnosis/high_rate.h"
#include "operator/core/diagnosis/job_length.h"
#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

constexpr double kHalf = 0.5;    // of the examples: an epoch that leaves out more leaves out most
constexpr double kNoise = 0.03;  // of a loss that does not fall any more

// A net that has learned little may have had too few.
constexpr std::uint64_t kFewBatchesOfThread = 400;

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f%%", 100 * share);
  return text;
}

// Whether the loss fell by so large a share in the last epoch; in the first, from its mean to the
// model at its end.
bool FellBy(double share, const JobState& state) {
  const EpochResult& last = state.row;
  return state.earlier_loss > 0
             ? last.training_loss < (1 - share) * state.earlier_loss
             : last.is_validated() && last.validation_loss < (1 - share) * last.training_loss;
}

std::string AboutCompletion(const JobSettings& settings) {
  return settings.epoch_completion < kHalf ? "a higher spec.runPolicy.epochCompletion than " +
                                                 NumberText(settings.epoch_completion) + ", "
                                           : "";
}

double LimitOf(const JobSettings& settings, const JobState& state) {
  const bool is_explained = settings.epoch_completion < kHalf ||
                            settings.hindrances.untrained_start ||
                            settings.hindrances.weight_decay >= kStrongDecay;
  return is_explained ? kPoorShare : FellBy(kFallen, state) ? kPoorFallingShare : kPoorEndShare;
}

std::string Longer(const JobLength& length) {
  const bool few = length.batches - length.warm_up < kFewBatchesOfThread * length.threads;
  return few ? TryLongerText(length) : "more epochs (spec.runPolicy.epochs)";
}

// Of validation data that is too small for a verdict the accuracy may still say nothing good.
std::string AboutTop1(const JobSettings& settings, const EpochResult& last) {
  const double at_random = std::exp(-settings.chance_loss) * static_cast<double>(last.validated);
  return !last.is_validated() || BeatsNaming(last, at_random)
             ? ""
             : "top-1 is hardly better than naming classes at random, and ";
}

}  // namespace

std::string PoorEnd(const JobSettings& settings, const JobState& state) {
  const EpochResult& last = state.row;
  if (!last.is_measured() || settings.chance_loss == 0) {
    return "";
  }
  // That of training is a mean over the epoch, in which the model may have become a good one.
  const double loss =
      last.is_validated() ? std::min(last.training_loss, last.validation_loss) : last.training_loss;
  const double share = loss / settings.chance_loss;
  const bool reached = settings.target_accuracy && state.accuracy >= *settings.target_accuracy;
  if (reached || !(share >= LimitOf(settings, state))) {
    return "";
  }
  const std::string first = AboutDecay(settings.hindrances) + AboutCompletion(settings) +
                            AboutStart(settings.hindrances) + AboutSwings(settings.hindrances);
  const std::string longer = first + Longer(LengthOf(settings, state));
  return AboutTop1(settings, last) + "the training loss ended at " +
         NumberText(last.training_loss) + ", " +
         Percent(last.training_loss / settings.chance_loss) +
         " of that of naming classes at random" +
         (state.earlier_loss == 0 ? "; try " + longer + " or another spec.optimiser.rate"
          : FellBy(kNoise, state)
              ? ", and still fell; try " + longer + " or a higher spec.optimiser.rate"
          : settings.hindrances.rate_falls
              ? ", and hardly fell in the last epoch, as the rate had fallen; try " + longer +
                    " or a higher spec.optimiser.rate"
              : ", and hardly fell in the last epoch; try " + first +
                    "another spec.optimiser.rate, or one that falls (spec.optimiser.schedule)");
}

}  // namespace adamant::controller
