#pragma once

#include <string>

#include "operator/core/state/state.h"

/// Advice on what to try where a net does not learn, or diverges.
namespace adamant::controller {

/// With less weight decay it is hardly the cause. Usual are 0.0001 to 0.001.
inline constexpr double kStrongDecay = 0.01;

/// With more momentum the rate is, in effect, much higher than it is written.
inline constexpr double kHighMomentum = 0.95;

enum class RateAdvice {
  kLower,
  kHigher,   ///< or else a lower one
  kUnknown,  ///< a lower one, or else a higher
};

/// "first a lower weight decay than 0.1 (spec.optimiser.weightDecay), then "; "" if it is not
/// strong: it pulls weights to 0 at any rate.
[[nodiscard]] std::string AboutDecay(const Hindrances& hindrances);

/// Returns the remedy for what keeps several workers from learning together:
/// "spec.distribution.warmStart left out (…), "; "" where nothing of the manifest does.
[[nodiscard]] std::string AboutStart(const Hindrances& hindrances);

/// Returns the remedy for several workers whose numbers are taken as they are: "" where they are
/// not. They may have diverged at once, whatever the loss did.
[[nodiscard]] std::string AboutAsynchrony(const Hindrances& hindrances);

/// Returns that and the remedy for what else beside the rate makes training swing: "a lower
/// spec.optimiser.momentum than 0.99, "; "" where there is nothing unusual.
[[nodiscard]] std::string AboutSwings(const Hindrances& hindrances);

/// "; try a lower spec.optimiser.rate …": before the rate it names weight decay that is strong.
[[nodiscard]] std::string TryText(RateAdvice rate, const Hindrances& hindrances);

/// The same where nothing was learned: then layers that do not train may be why, too, and in a job
/// of few batches these come before the rate.
[[nodiscard]] std::string TryToLearnText(RateAdvice rate, const Hindrances& hindrances);

}  // namespace adamant::controller
