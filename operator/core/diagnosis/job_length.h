#pragma once

#include <string>

#include "operator/core/state/state.h"

namespace adamant::controller {

/// Returns how much a job has trained by the end of its row, if it ends there.
[[nodiscard]] JobLength LengthOf(const JobSettings& settings, const JobState& state);

/// The manifest's, with the length of a job that ends.
[[nodiscard]] Hindrances HindrancesOf(const JobSettings& settings, const JobState& state);

/// Returns true if so few batches hardly move weights at a rate that is right. Those of a warm-up
/// do not count, and each of several threads goes only its share of the way.
[[nodiscard]] bool IsTooShort(const JobLength& length);

/// "the job has 5 batches in all, 4 of them in its warm-up", and what to try: "more epochs …".
[[nodiscard]] std::string ShortText(const JobLength& length);
[[nodiscard]] std::string TryLongerText(const JobLength& length);

}  // namespace adamant::controller
