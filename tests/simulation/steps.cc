#include "tests/simulation/steps.h"

namespace adamant::simulation {
namespace {

// Made by build/failpoints/tests/measure_steps > tests/simulation/steps.inc.
constexpr Step kSteps[] = {
#include "tests/simulation/steps.inc"
};

}  // namespace

std::span<const Step> Steps() { return kSteps; }

}  // namespace adamant::simulation
