#pragma once

#include <string>

#include "operator/core/state/state.h"

/// Remarks on a job that succeeds with a model that nobody calls good, where nothing else is known
/// of why. How much can be learned of the data nobody knows either; so little is said.
namespace adamant::controller {

/// Of the loss of naming classes at random: a training loss that ends so high is called poor.
inline constexpr double kPoorEndShare = 0.5;

/// The same of one that has fallen by `kFallen` from one epoch to the last.
inline constexpr double kPoorFallingShare = 0.25;
inline constexpr double kFallen = 0.1;
// A job whose epochs leave out most of their examples, or whose workers began on weights that
// nobody had trained, is told so from kPoorShare on (high_rate.h).

/// "the training loss ended at 1.2, 52% of that of naming classes at random, and still fell: …",
/// with what to try, of a job whose row is its last; "" where that or the validation loss ended
/// low, where spec.runPolicy.targetAccuracy was reached, or nothing is known.
[[nodiscard]] std::string PoorEnd(const JobSettings& settings, const JobState& state);

}  // namespace adamant::controller
