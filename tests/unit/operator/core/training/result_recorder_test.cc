#include "operator/core/training/result_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

class ResultRecorderTest : public testing::Test {
 protected:
  // The only worker tells its totals.
  void Train(std::uint64_t examples, std::uint64_t updates_lost) {
    meter_.OnWorker(0, 1, {.trained_examples = examples, .updates_lost = updates_lost}, now_);
  }

  void Close(std::chrono::milliseconds after) {
    results_.Begin();
    results_.Add({.counted_examples = 45, .left_examples = 5, .retrained_examples = 1});
    results_.Add({.counted_examples = 45, .left_examples = 5, .retrained_examples = 1});
    state_.epoch_active = after;
    results_.OnPartsClosed();
  }

  // The next epoch has this result. Returns how many alarms that gives.
  std::int64_t AlarmsAfter(Evaluated evaluated) {
    state_.step = Step::kEvaluating;
    state_.row = {};
    state_.row.epoch = evaluated.epoch = state_.epoch;
    EXPECT_TRUE(results_.OnEvaluated(evaluated));
    ++state_.epoch;
    const std::vector<Note> notes = Pick<Note>(outbox_.Take(state_));
    return std::ranges::count(notes, Note::Kind::kAlarm, &Note::kind);
  }

  const Clock::TimePoint now_{std::chrono::hours(1)};
  JobSettings settings_;
  JobState state_;
  Outbox outbox_;
  TrainingMeter meter_{state_};
  ResultRecorder results_{settings_, state_, outbox_, meter_};
};

TEST_F(ResultRecorderTest, ARowIsFilledStepByStepAndStored) {
  state_.epoch = 2;
  state_.row.epoch = 1;
  state_.row.trained = 7;
  state_.restarts = 4;
  state_.recovery.attempt = 2;
  state_.updates_lost = 10;
  Close(seconds(30));
  Train(100, 3);
  state_.unrecorded_losses += 2;  // while no worker lived
  results_.OnWorkersFlushed();
  EXPECT_EQ(state_.unrecorded_losses, 5u);
  state_.row.snapshot = 9;
  state_.epoch_active = seconds(40);
  Train(100, 4);  // which it has found since
  Evaluated evaluated{.epoch = 2, .snapshot = 9, .examples = 100, .correct = 80, .loss_sum = 25};
  EXPECT_FALSE(results_.OnEvaluated(evaluated)) << "it is not that step";
  state_.step = Step::kEvaluating;
  evaluated.snapshot = 8;
  EXPECT_FALSE(results_.OnEvaluated(evaluated)) << "another model";
  evaluated.snapshot = 9;
  evaluated.epoch = 1;
  EXPECT_FALSE(results_.OnEvaluated(evaluated)) << "another epoch";
  EXPECT_THAT(outbox_.Take(state_), IsEmpty());
  evaluated.epoch = 2;
  EXPECT_TRUE(results_.OnEvaluated(evaluated));
  const std::vector<Action> actions = outbox_.Take(state_);
  ASSERT_THAT(Pick<EpochDone>(actions), SizeIs(1));
  const EpochResult row = Pick<EpochDone>(actions)[0].result;
  EXPECT_EQ(row.epoch, 2u);
  EXPECT_EQ(row.counted, 90u);
  EXPECT_EQ(row.left, 10u);
  EXPECT_EQ(row.retrained, 2u);
  EXPECT_EQ(row.trained, 100u);
  EXPECT_EQ(row.updates_lost, 6u);
  EXPECT_EQ(row.seconds, 30);
  EXPECT_EQ(row.evaluation_seconds, 10);
  EXPECT_EQ(row.validated, 100u);
  EXPECT_DOUBLE_EQ(row.top1, 0.8);
  EXPECT_DOUBLE_EQ(row.validation_loss, 0.25);
  EXPECT_EQ(row.restarts, 4u);
  EXPECT_EQ(row.attempt, 2u);
  EXPECT_EQ(row, state_.row);
  EXPECT_EQ(state_.updates_lost, 16u);
  EXPECT_EQ(state_.unrecorded_losses, 0u);
  ASSERT_THAT(Pick<Persist>(actions), SizeIs(1));
  EXPECT_THAT(Pick<Persist>(actions)[0].entries, SizeIs(2)) << "the row, and the state";
}

TEST_F(ResultRecorderTest, AnEpochThatIsClosedAgainIsCountedAgainAndMeasuredOnce) {
  Close(seconds(30));
  Train(100, 3);
  results_.OnWorkersFlushed();
  Close(seconds(50));
  Train(120, 5);
  results_.OnWorkersFlushed();
  EXPECT_EQ(state_.row.counted, 90u);
  EXPECT_EQ(state_.row.seconds, 30);
  EXPECT_EQ(state_.row.trained, 100u);
  EXPECT_EQ(state_.unrecorded_losses, 5u);
  // The worker tells a new controller of all its time.
  meter_ = TrainingMeter(state_);
  meter_.OnRejoined(0, 1);
  Train(120, 9);
  ResultRecorder(settings_, state_, outbox_, meter_).OnWorkersFlushed();
  EXPECT_EQ(state_.row.trained, 100u);
  EXPECT_EQ(state_.unrecorded_losses, 9u);
}

TEST_F(ResultRecorderTest, WhatHasBecomeOfUpdatesThatWereRolledBackIsToldWhenWorkersHaveFlushed) {
  state_.rolled_back = {.open = true, .updates = 3};
  Close(seconds(30));
  Train(100, 3);
  results_.OnWorkersFlushed();
  const auto notes = Pick<Note>(outbox_.Take(state_));
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_THAT(notes[0].text, testing::StartsWith("at least 3 updates are lost"));
}

TEST_F(ResultRecorderTest, AnEpochThatEndedWithoutAControllerKeepsWhatWasSeenOfIt) {
  state_.row = {.epoch = 1, .snapshot = 9, .trained = 80, .updates_lost = 2};
  state_.restarts = 4;
  state_.recovery.attempt = 2;
  state_.unrecorded_losses = 3;
  results_.StoreUnattended({.epoch = 1, .counted = 100, .left = 5, .retrained = 3});
  results_.StoreUnattended({.epoch = 2, .counted = 50});
  const auto done = Pick<EpochDone>(outbox_.Take(state_));
  ASSERT_THAT(done, SizeIs(2));
  EXPECT_EQ(done[0].result,
            (EpochResult{.epoch = 1,
                         .counted = 100,
                         .left = 5,
                         .retrained = 3,
                         .trained = 80,
                         .updates_lost = 5,
                         .restarts = 4,
                         .attempt = 2}));
  EXPECT_EQ(done[1].result, (EpochResult{.epoch = 2, .counted = 50, .restarts = 4, .attempt = 2}));
  EXPECT_EQ(state_.recovery.counted_examples, 150u);
  EXPECT_EQ(state_.updates_lost, 5u);
}

TEST_F(ResultRecorderTest, AModelAtChanceIsToldOnceInEachAttempt) {
  const Evaluated at_chance{.examples = 1'000, .correct = 100, .most_frequent = 100};
  EXPECT_EQ(AlarmsAfter(at_chance), 1);
  EXPECT_TRUE(state_.at_chance);
  EXPECT_EQ(AlarmsAfter(at_chance), 0);
  results_.Restart();
  EXPECT_EQ(AlarmsAfter(at_chance), 1);
  EXPECT_EQ(AlarmsAfter({.examples = 1'000, .correct = 900, .most_frequent = 100}), 0);
  EXPECT_FALSE(state_.at_chance);
}

TEST_F(ResultRecorderTest, ValidationDataOfOneClassIsToldAtTheFirstEpoch) {
  const Evaluated one_class{.examples = 500, .correct = 500, .most_frequent = 500};
  EXPECT_EQ(AlarmsAfter(one_class), 1);
  EXPECT_EQ(AlarmsAfter(one_class), 0);
}

}  // namespace
}  // namespace adamant::controller
