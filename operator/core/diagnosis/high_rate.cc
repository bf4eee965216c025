#include "operator/core/diagnosis/high_rate.h"

#include <cmath>
#include <cstdio>

#include "operator/core/diagnosis/advice.h"
#include "operator/core/diagnosis/job_length.h"
#include "operator/core/diagnosis/recovery.h"
#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

bool IsLowered(const JobState& state) { return state.recovery.rate_factor < 1; }

// After very few batches more of them help first.
std::string WhatToTry(const Hindrances& hindrances) {
  return IsTooShort(hindrances.length)
             ? "; " + ShortText(hindrances.length) + ": try " + AboutAsynchrony(hindrances) +
                   TryLongerText(hindrances.length) + ", or a lower spec.optimiser.rate"
             : TryText(RateAdvice::kLower, hindrances);
}

std::string Times(std::uint64_t times) {
  return std::to_string(times) + (times == 1 ? " time" : " times");
}

}  // namespace

std::string WentBack(const JobSettings& settings, const JobState& state) {
  const auto halvings =
      static_cast<std::uint64_t>(std::round(-std::log2(state.recovery.rate_factor)));
  return IsLowered(state) ? "the job went back " + Times(halvings) +
                                " as training diverged, and ended at " + RateOf(settings, state)
                          : "";
}

std::string HighRate(const JobSettings& settings, const JobState& state) {
  const EpochResult& last = state.row;
  const std::string& sign = state.recovery.sign;
  const double share = last.training_loss / settings.chance_loss;
  if (!last.is_measured() || settings.chance_loss == 0 || share < kPoorShare ||
      (sign.empty() && !IsLowered(state))) {
    return "";
  }
  char percent[32];
  std::snprintf(percent, sizeof(percent), "%.0f%%", 100 * share);
  return "the training loss ended at " + NumberText(last.training_loss) + ", " + percent +
         " of that of naming classes at random" +
         (sign.empty() ? ": the learning rate may still have been too high"
                       : ", and " + sign + ": the learning rate was probably too high") +
         WhatToTry(HindrancesOf(settings, state));
}

}  // namespace adamant::controller
