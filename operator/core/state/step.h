#pragma once

#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// Goes on with this step, and with the phase that users see of it.
void EnterStep(Step step, JobState& state, Outbox& outbox);

}  // namespace adamant::controller
