#include "tests/simulation/job/steps.h"

namespace adamant::simulation {
namespace {

// Made by build/failpoints/tests/measure_steps > tests/simulation/job/steps.inc.
constexpr Step kSteps[] = {
#include "tests/simulation/job/steps.inc"
};

}  // namespace

std::span<const Step> Steps() { return kSteps; }

}  // namespace adamant::simulation
