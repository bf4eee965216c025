#pragma once

#include <string>
#include <vector>

#include "operator/core/state/state.h"

namespace adamant::local {

/// An SVG picture of training loss, validation loss and top-1 accuracy by epoch. Light and dark
/// viewers can read it; it refers to nothing outside itself. `results` are in the order in which
/// their epochs ended; those that the job has undone by going back are faint dots beside the lines.
std::string DrawLearningCurve(const std::string& job,
                              const std::vector<controller::EpochResult>& results);

/// A round step (1, 2 or 5 times a power of ten) that cuts `range` into at most `most` parts.
double RoundStep(double range, int most);

}  // namespace adamant::local
