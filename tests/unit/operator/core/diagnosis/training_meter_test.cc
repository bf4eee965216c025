#include "operator/core/diagnosis/training_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace adamant::controller {
namespace {

class TrainingMeterTest : public testing::Test {
 protected:
  TrainingMeter::TimePoint At(int second) { return start_ + std::chrono::seconds(second); }

  const TrainingMeter::TimePoint start_{std::chrono::hours(1)};
  JobState state_;
  TrainingMeter meter_{state_};
};

TEST_F(TrainingMeterTest, AnEpochCountsOnlyWhatItsHeartbeatsAdd) {
  meter_.StartEpoch(1);
  meter_.OnWorker(0, 1, {.trained_examples = 100, .loss_sum = 200, .correct = 50}, At(0));
  meter_.StartEpoch(2);
  meter_.OnWorker(0, 1, {.trained_examples = 300, .loss_sum = 300, .correct = 200}, At(1));
  EpochResult row;
  meter_.Fill(row);
  EXPECT_EQ(row.trained, 200u);
  EXPECT_DOUBLE_EQ(row.training_loss, 0.5);
  EXPECT_DOUBLE_EQ(row.training_accuracy, 0.75);
}

TEST_F(TrainingMeterTest, AWorkersHistogramIsNoLongerThanItsBound) {
  WorkerProgress progress{.trained_examples = 1};
  progress.update_staleness_counts.assign(10'000, 1);
  meter_.StartEpoch(1);
  meter_.OnWorker(0, 1, progress, At(0));
  EpochResult row;
  meter_.Fill(row);
  EXPECT_EQ(row.update_staleness_counts, std::vector<std::uint64_t>(kStalenessBins, 1));
}

TEST_F(TrainingMeterTest, ANewIncarnationStartsFromZero) {
  meter_.StartEpoch(1);
  meter_.OnWorker(0, 1, {.trained_examples = 100, .update_staleness_counts = {5}}, At(0));
  meter_.OnWorker(0, 2, {.trained_examples = 30, .update_staleness_counts = {1, 2}}, At(1));
  EpochResult row;
  meter_.Fill(row);
  EXPECT_EQ(row.trained, 130u);
  EXPECT_THAT(row.update_staleness_counts, testing::ElementsAre(6u, 2u));
}

TEST_F(TrainingMeterTest, WhatAProcessHadDoneBeforeItWasHeardOfWasNotWatched) {
  meter_.StartEpoch(1);
  meter_.OnWorker(0, 1, {.trained_examples = 900, .loss_sum = 1800}, At(0));
  EXPECT_EQ(meter_.watched().trained, 0u);
  meter_.OnWorker(0, 1, {.trained_examples = 1000, .loss_sum = 1850}, At(1));
  meter_.StartEpoch(2);
  meter_.OnWorker(0, 2, {.trained_examples = 10, .loss_sum = 20}, At(2));
  meter_.OnWorker(0, 2, {.trained_examples = 20, .loss_sum = 25}, At(3));
  EXPECT_EQ(meter_.watched().trained, 110u);
  EXPECT_DOUBLE_EQ(meter_.watched().MeanLossSince({}), 0.5);
}

TEST_F(TrainingMeterTest, CountsDoNotFallWhenADataServerIsLost) {
  meter_.StartEpoch(1);
  meter_.OnDataServer(0, {.epoch = 1, .counted_examples = 40, .total_examples = 50}, At(0));
  meter_.OnDataServer(1, {.epoch = 1, .counted_examples = 30, .total_examples = 50}, At(0));
  EXPECT_EQ(meter_.counted(), 70u);
  meter_.OnDataServerLost(0);
  meter_.OnDataServer(1, {.epoch = 1, .counted_examples = 35, .total_examples = 50}, At(1));
  EXPECT_EQ(meter_.counted(), 70u);
  meter_.OnDataServer(1, {.epoch = 1, .counted_examples = 80, .total_examples = 100}, At(2));
  EXPECT_EQ(meter_.counted(), 80u);
  EXPECT_EQ(meter_.total(), 100u);
}

TEST_F(TrainingMeterTest, SpeedIsOfTheRecentPast) {
  meter_.StartEpoch(1);
  for (int second = 0; second <= 40; ++second) {
    const std::uint64_t counted =
        second < 20 ? 10u * static_cast<unsigned>(second) : 200u + 50u * (second - 20u);
    meter_.OnDataServer(
        0, {.epoch = 1, .counted_examples = counted, .total_examples = 9999}, At(second));
  }
  EXPECT_DOUBLE_EQ(meter_.ExamplesPerSecond(At(40)), 50);
}

TEST_F(TrainingMeterTest, AJobThatGoesOnHasTheSpeedOfWhatIsCountedSince) {
  meter_.OnDataServer(0, {.epoch = 0}, At(-1));  // it has not read its ledgers
  meter_.OnWorker(0, 1, {}, At(0));
  meter_.StartEpoch(7);
  const auto count = [&](std::uint32_t slot, std::uint64_t counted, int second) {
    meter_.OnDataServer(
        slot, {.epoch = 7, .counted_examples = counted, .total_examples = 9999}, At(second));
  };
  meter_.OnWorker(0, 1, {}, At(30));
  count(0, 5000, 31);
  count(1, 4000, 32);
  EXPECT_EQ(meter_.ExamplesPerSecond(At(32)), 0);
  count(0, 5100, 34);
  count(1, 4100, 34);
  EXPECT_DOUBLE_EQ(meter_.ExamplesPerSecond(At(34)), 50);
  EXPECT_EQ(meter_.counted(), 9200u) << "of the epoch, all counts";
}

TEST_F(TrainingMeterTest, ALaterEpochIsWatchedFromItsBeginning) {
  meter_.StartEpoch(1);
  meter_.OnDataServer(0, {.epoch = 1, .counted_examples = 0, .total_examples = 60}, At(0));
  meter_.StartEpoch(2);
  meter_.OnDataServer(1, {.epoch = 2, .counted_examples = 60, .total_examples = 60}, At(2));
  EXPECT_DOUBLE_EQ(meter_.ExamplesPerSecond(At(2)), 30);
}

// As of a controller that was stopped while its members went on.
TEST_F(TrainingMeterTest, WhatComesAtOnceAfterAPauseIsOfAllThatTime) {
  std::uint64_t counted = 0;
  const auto count = [&](TrainingMeter::TimePoint now) {
    counted += 100;
    meter_.OnDataServer(0, {.epoch = 1, .counted_examples = counted, .total_examples = 9999}, now);
  };
  meter_.StartEpoch(1);
  for (int second = 0; second <= 20; ++second) {
    count(At(second));
  }
  for (int i = 0; i < 60; ++i) {
    count(At(80) + std::chrono::microseconds(i));
  }
  EXPECT_NEAR(meter_.ExamplesPerSecond(At(80)), 100, 1);
  for (int second = 81; second <= 95; ++second) {
    count(At(second));
    EXPECT_NEAR(meter_.ExamplesPerSecond(At(second)), 100, 1);
  }
}

TEST_F(TrainingMeterTest, SpeedFallsToNothingWhileTrainingStands) {
  meter_.StartEpoch(1);
  const auto tell = [&](std::uint64_t counted, int second) {
    meter_.OnDataServer(
        0, {.epoch = 1, .counted_examples = counted, .total_examples = 9999}, At(second));
  };
  for (int second = 0; second <= 10; ++second) {
    tell(std::uint64_t{100} * static_cast<unsigned>(second), second);
  }
  EXPECT_DOUBLE_EQ(meter_.ExamplesPerSecond(At(12)), 100);
  EXPECT_EQ(meter_.ExamplesPerSecond(At(14)), 0) << "nothing is heard";
  for (int second = 11; second <= 14; ++second) {
    tell(1000, second);
  }
  EXPECT_EQ(meter_.ExamplesPerSecond(At(14)), 0) << "nothing is counted";
  tell(1400, 15);
  EXPECT_GT(meter_.ExamplesPerSecond(At(15)), 0);
}

TEST_F(TrainingMeterTest, BatchesThatTakeLongAreNoStandstill) {
  meter_.StartEpoch(1);
  for (int second = 0; second <= 20; ++second) {
    const auto batches = static_cast<std::uint64_t>(second / 5);
    meter_.OnDataServer(
        0, {.epoch = 1, .counted_examples = 100 * batches, .total_examples = 9999}, At(second));
  }
  EXPECT_GT(meter_.ExamplesPerSecond(At(24)), 0);
}

TEST_F(TrainingMeterTest, SpeedAndLossSpanEpochs) {
  for (DataEpoch epoch = 1; epoch <= 3; ++epoch) {
    meter_.StartEpoch(epoch);
    meter_.OnDataServer(0,
                        {.epoch = epoch, .counted_examples = 60, .total_examples = 60},
                        At(static_cast<int>(2 * epoch)));
    meter_.OnWorker(0,
                    1,
                    {.trained_examples = 60 * epoch, .loss_sum = 30.0 * static_cast<double>(epoch)},
                    At(static_cast<int>(2 * epoch)));
  }
  meter_.StartEpoch(4);
  EXPECT_EQ(meter_.counted(), 0u);
  EXPECT_DOUBLE_EQ(meter_.ExamplesPerSecond(At(6)), 30);
  EXPECT_DOUBLE_EQ(meter_.RecentLoss(), 0.5);
}

// Workers tell what they have done since their processes began.
class UnattendedMeterTest : public TrainingMeterTest {
 protected:
  UnattendedMeterTest() { meter_.StartEpoch(1); }

  void Hear(std::uint32_t slot, std::uint64_t trained, std::uint64_t lost = 0) {
    WorkerProgress progress;
    progress.trained_examples = trained;
    progress.correct = trained / 2;
    progress.loss_sum = 0.5 * static_cast<double>(trained);
    progress.updates_lost = lost;
    progress.update_staleness_counts = {trained};
    meter_.OnWorker(slot, 1, progress, TrainingMeter::TimePoint{});
  }

  [[nodiscard]] EpochResult Row() const {
    EpochResult row;
    meter_.Fill(row);
    return row;
  }
};

TEST_F(UnattendedMeterTest, WhatAWorkerOfAnEarlierControllerSaysFirstIsOfBefore) {
  meter_.OnRejoined(0, 1);
  Hear(0, 100'000, 2);
  EXPECT_FALSE(Row().is_measured());
  EXPECT_EQ(meter_.watched().trained, 0U);
  EXPECT_EQ(state_.unrecorded_losses, 2U) << "never too few";
  Hear(0, 100'300, 2);
  EXPECT_EQ(Row().trained, 300U);
  EXPECT_DOUBLE_EQ(Row().training_loss, 0.5);
  EXPECT_EQ(Row().update_staleness_counts.front(), 300U);
  EXPECT_EQ(state_.unrecorded_losses, 2U);
}

TEST_F(UnattendedMeterTest, AConnectionThatWasMadeAnewChangesNothing) {
  Hear(0, 100);
  meter_.OnRejoined(0, 1);
  Hear(0, 300);
  EXPECT_EQ(Row().trained, 300U);
}

TEST_F(UnattendedMeterTest, AfterEpochsThatNobodyAttendedWhatIsToldNextIsOfThese) {
  Hear(0, 100, 1);
  meter_.OnUnattended();
  meter_.StartEpoch(4);
  Hear(0, 90'000, 3);
  EXPECT_FALSE(Row().is_measured());
  EXPECT_EQ(state_.unrecorded_losses, 3U);
  Hear(0, 90'200, 3);
  EXPECT_EQ(Row().trained, 200U);
}

// As after a signal: processes begin anew, the state has what was counted of the epoch.
TEST_F(UnattendedMeterTest, AnEpochThatIsResumedKeepsWhatWasCountedOfIt) {
  Hear(0, 100, 230);
  meter_ = TrainingMeter(state_);
  meter_.StartEpoch(1);
  meter_.OnWorker(0, 2, {.trained_examples = 300, .loss_sum = 50, .updates_lost = 1}, At(0));
  EXPECT_EQ(Row().trained, 400U);
  EXPECT_DOUBLE_EQ(Row().training_loss, 0.25);
  EXPECT_EQ(state_.unrecorded_losses, 231U);
  EXPECT_EQ(meter_.OverAllEpochs().trained, 300U) << "what this one has metered";
  meter_.StartEpoch(2);
  EXPECT_FALSE(Row().is_measured());
  EXPECT_EQ(state_.unrecorded_losses, 231U) << "no result tells of them yet";
}

TEST_F(UnattendedMeterTest, ANewControllerCountsNoLossTwiceAndNoneTooFew) {
  Hear(0, 100, 230);
  meter_ = TrainingMeter(state_);
  meter_.OnRejoined(0, 1);
  Hear(0, 200, 230);
  EXPECT_EQ(state_.unrecorded_losses, 230U);
  EXPECT_EQ(Row().trained, 100U) << "the time of the rest is not counted either";
  Hear(0, 250, 233);
  EXPECT_EQ(state_.unrecorded_losses, 233U);
  EXPECT_EQ(Row().trained, 150U);
}

TEST_F(UnattendedMeterTest, SaysWhetherALossIsNews) {
  EXPECT_FALSE(meter_.OnWorker(0, 1, {.trained_examples = 1}, At(0)));
  EXPECT_TRUE(meter_.OnWorker(0, 1, {.trained_examples = 1, .updates_lost = 2}, At(1)));
  EXPECT_FALSE(meter_.OnWorker(0, 1, {.trained_examples = 1, .updates_lost = 2}, At(2)));
}

}  // namespace
}  // namespace adamant::controller
