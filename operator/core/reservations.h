#pragma once

#include <string>

#include "operator/core/state.h"

namespace adamant::controller {

/// What is to be said of the model of a job that ends: that spec.runPolicy.targetAccuracy was not
/// reached, that an earlier epoch was better, that the job went back, that little was learned, or
/// less than at a lower rate. "" where there is nothing to say.
[[nodiscard]] std::string ReservationsOf(const JobSettings& settings, const JobState& state);

}  // namespace adamant::controller
