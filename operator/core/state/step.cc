#include "operator/core/state/step.h"

namespace adamant::controller {

void EnterStep(Step step, JobState& state, Outbox& outbox) {
  state.step = step;
  state.phase = step == Step::kTraining       ? Phase::kRunning
                : step == Step::kFirstWeights ? Phase::kStarting
                                              : Phase::kEvaluating;
  outbox.StateChanged();
}

}  // namespace adamant::controller
