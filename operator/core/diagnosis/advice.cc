#include "operator/core/diagnosis/advice.h"

#include <algorithm>
#include <cstddef>

#include "operator/core/diagnosis/job_length.h"
#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

std::string AboutRate(RateAdvice rate) {
  switch (rate) {
    case RateAdvice::kLower:
      return "a lower spec.optimiser.rate, or a warm-up (spec.optimiser.schedule.warmUp)";
    case RateAdvice::kHigher:
      return "a higher spec.optimiser.rate, or else a lower one with a warm-up "
             "(spec.optimiser.schedule.warmUp)";
    default:
      return "a lower spec.optimiser.rate, a warm-up (spec.optimiser.schedule.warmUp) or, if the "
             "loss has hardly moved, a higher rate";
  }
}

std::string AboutFrozen(const Hindrances& hindrances) {
  constexpr std::size_t kMostNamed = 3;
  std::string layers;
  const std::size_t named = std::min(hindrances.frozen.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    layers += (layers.empty() ? "" : ", ") + hindrances.frozen[i];
  }
  if (hindrances.frozen.size() > named) {
    layers += " and " + std::to_string(hindrances.frozen.size() - named) + " more";
  }
  return layers.empty()
             ? ""
             : ", or to train " + layers + ", which spec.optimiser.layers freezes with rate 0";
}

}  // namespace

std::string AboutDecay(const Hindrances& hindrances) {
  return hindrances.weight_decay < kStrongDecay
             ? ""
             : std::string("first a lower weight decay than ") +
                   NumberText(hindrances.weight_decay) +
                   (hindrances.is_of_layer ? " (spec.optimiser.layers)"
                                           : " (spec.optimiser.weightDecay)") +
                   ", then ";
}

std::string AboutStart(const Hindrances& hindrances) {
  return hindrances.untrained_start
             ? "spec.distribution.warmStart left out (with 0, several workers begin on weights "
               "that nobody has trained), "
             : "";
}

std::string AboutAsynchrony(const Hindrances& hindrances) {
  return hindrances.uncorrected
             ? "spec.optimiser.asynchrony: Auto (it is Off, with several workers), "
             : "";
}

std::string AboutSwings(const Hindrances& hindrances) {
  return AboutAsynchrony(hindrances) +
         (hindrances.momentum > kHighMomentum
              ? "a lower spec.optimiser.momentum than " + NumberText(hindrances.momentum) + ", "
              : "");
}

std::string TryText(RateAdvice rate, const Hindrances& hindrances) {
  return "; try " + AboutDecay(hindrances) + AboutStart(hindrances) +
         (rate == RateAdvice::kHigher ? AboutAsynchrony(hindrances) : AboutSwings(hindrances)) +
         AboutRate(rate);
}

std::string TryToLearnText(RateAdvice rate, const Hindrances& hindrances) {
  return hindrances.all_frozen
             ? "; no layer trains, as spec.optimiser.layers freezes each with rate 0"
         : hindrances.target ? "; the job ended early, at spec.runPolicy.targetAccuracy, " +
                                   NumberText(*hindrances.target) +
                                   ", which what has learned nothing may reach: "
                                   "raise it, or leave it out"
         : IsTooShort(hindrances.length)
             ? "; " + ShortText(hindrances.length) + ": try " + AboutDecay(hindrances) +
                   AboutAsynchrony(hindrances) + TryLongerText(hindrances.length) +
                   (rate == RateAdvice::kHigher ? ", or else a higher spec.optimiser.rate" : "") +
                   AboutFrozen(hindrances)
             : TryText(rate, hindrances) + AboutFrozen(hindrances);
}

}  // namespace adamant::controller
