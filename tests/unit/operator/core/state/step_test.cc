#include "operator/core/state/step.h"

#include <gtest/gtest.h>

namespace adamant::controller {
namespace {

TEST(StepTest, UsersSeeThePhaseOfTheStepWhichIsStored) {
  JobState state;
  Outbox outbox;
  const auto phase_of = [&](Step step) {
    EnterStep(step, state, outbox);
    EXPECT_EQ(state.step, step);
    EXPECT_EQ(outbox.Take(state).size(), 1u);
    return state.phase;
  };
  EXPECT_EQ(phase_of(Step::kFirstWeights), Phase::kStarting);
  EXPECT_EQ(phase_of(Step::kTraining), Phase::kRunning);
  EXPECT_EQ(phase_of(Step::kClosing), Phase::kEvaluating);
  EXPECT_EQ(phase_of(Step::kExporting), Phase::kEvaluating);
}

}  // namespace
}  // namespace adamant::controller
