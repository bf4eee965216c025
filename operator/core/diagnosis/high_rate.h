#pragma once

#include <string>

#include "operator/core/state/state.h"

/// Signs, at the end of a job that has learned something, that its learning rate was too high. How
/// much can be learned of the data nobody knows: so a training loss that ended far from 0 says that
/// only together with a sign that comes of the rate, not of the data.
namespace adamant::controller {

/// Of the loss of naming classes at random: with less the model is not called poor.
inline constexpr double kPoorShare = 0.1;

/// "the job went back 2 times as training diverged, and ended at learning rate 0.005"; "" if it is
/// at the rate that it began with.
[[nodiscard]] std::string WentBack(const JobSettings& settings, const JobState& state);

/// Of a job whose row is its last: that its training loss ended far from 0, by which sign its rate
/// was too high (it went back, or Recovery::sign), and what to try; else "".
[[nodiscard]] std::string HighRate(const JobSettings& settings, const JobState& state);

}  // namespace adamant::controller
