#include "tests/simulation/replication/steps.h"

namespace adamant::replication_simulation {
namespace {

// Made by build/failpoints/tests/measure_replication_steps >
// tests/simulation/replication/steps.inc.
constexpr simulation::Step kSteps[] = {
#include "tests/simulation/replication/steps.inc"
};

}  // namespace

std::span<const simulation::Step> Steps() { return kSteps; }

}  // namespace adamant::replication_simulation
