#pragma once

#include <span>

#include "tests/simulation/engine/aimed_faults.h"

namespace adamant::replication_simulation {

/// All that some seed passes. Measured beforehand, so that rare ones can be aimed at and one seed
/// replays alone.
std::span<const simulation::Step> Steps();

}  // namespace adamant::replication_simulation
