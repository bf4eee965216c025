#include "operator/core/advice.h"

#include "operator/core/job_length.h"
#include "operator/core/number_text.h"

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

// Weights are pulled to 0 by it, at any rate; "" if it is weak.
std::string AboutDecay(const Hindrances& hindrances) {
  return hindrances.weight_decay < kStrongDecay
             ? ""
             : std::string("first a lower weight decay than ") +
                   NumberText(hindrances.weight_decay) +
                   (hindrances.is_of_layer ? " (spec.optimiser.layers)"
                                           : " (spec.optimiser.weightDecay)") +
                   ", then ";
}

std::string AboutFrozen(const Hindrances& hindrances) {
  std::string layers;
  for (const std::string& layer : hindrances.frozen) {
    layers += (layers.empty() ? "" : ", ") + layer;
  }
  return layers.empty()
             ? ""
             : ", or to train " + layers + ", which spec.optimiser.layers freezes with rate 0";
}

}  // namespace

std::string AboutMomentum(const Hindrances& hindrances) {
  return hindrances.momentum > kHighMomentum
             ? "a lower spec.optimiser.momentum than " + NumberText(hindrances.momentum) + ", "
             : "";
}

std::string TryText(RateAdvice rate, const Hindrances& hindrances) {
  return "; try " + AboutDecay(hindrances) +
         (rate == RateAdvice::kHigher ? "" : AboutMomentum(hindrances)) + AboutRate(rate);
}

std::string TryToLearnText(RateAdvice rate, const Hindrances& hindrances) {
  return hindrances.all_frozen
             ? "; no layer trains, as spec.optimiser.layers freezes each with rate 0"
         : IsShort(hindrances.length)
             ? "; " + ShortText(hindrances.length) + ": try " + AboutDecay(hindrances) +
                   TryLongerText(hindrances.length) +
                   (rate == RateAdvice::kHigher ? ", or else a higher spec.optimiser.rate" : "") +
                   AboutFrozen(hindrances)
             : TryText(rate, hindrances) + AboutFrozen(hindrances);
}

}  // namespace adamant::controller
