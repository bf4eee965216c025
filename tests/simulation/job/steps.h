#pragma once

#include <span>

#include "tests/simulation/engine/aimed_faults.h"

namespace adamant::simulation {

/// All that some seed passes. Measured beforehand, so that rare ones can be aimed at and one seed
/// replays alone.
std::span<const Step> Steps();

}  // namespace adamant::simulation
