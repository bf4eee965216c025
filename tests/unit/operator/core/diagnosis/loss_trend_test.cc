#include "operator/core/diagnosis/loss_trend.h"

#include <gtest/gtest.h>

namespace adamant::controller {
namespace {

constexpr double kFirstLoss = 2.3;

class LossTrendTest : public testing::Test {
 protected:
  LossTrendTest() { Train(1, kFirstLoss); }

  /// A worker tells of so many more examples, each at this loss.
  void Train(std::uint64_t examples, double loss) {
    progress_.trained_examples += examples;
    progress_.loss_sum += loss * static_cast<double>(examples);
    meter_.OnWorker(0, 1, progress_, TrainingMeter::TimePoint{});
    trend_.OnMeter(kFirstLoss);
  }

  void TrainPeriods(int periods, double loss) {
    for (int i = 0; i < periods; ++i) {
      Train(7'500, loss);
    }
  }

  const JobSettings settings_{.training_examples = 60'000};
  JobState state_;
  TrainingMeter meter_{state_};
  WorkerProgress progress_;
  LossTrend trend_{settings_, state_, meter_};
};

TEST_F(LossTrendTest, CountsPeriodsOfAHighLoss) {
  TrainPeriods(16, 0.2);
  EXPECT_EQ(trend_.high_periods(), 0u);
  TrainPeriods(3, 1.2);
  EXPECT_EQ(trend_.high_periods(), 3u);
  EXPECT_DOUBLE_EQ(trend_.last(), 1.2);
  EXPECT_DOUBLE_EQ(state_.recovery.best_loss, 0.2);
}

TEST_F(LossTrendTest, APeriodThatIsNotHighBeginsTheCountAnew) {
  TrainPeriods(8, 0.2);
  TrainPeriods(7, 1.2);
  TrainPeriods(1, 0.6);
  TrainPeriods(2, 1.2);
  EXPECT_EQ(trend_.high_periods(), 2u);
}

TEST_F(LossTrendTest, ABurstOfBadBatchesIsNoPeriod) {
  TrainPeriods(8, 0.2);
  for (int i = 0; i < 20; ++i) {
    Train(700, 2.5);
    Train(6'800, 0.2);
  }
  EXPECT_EQ(trend_.high_periods(), 0u);
}

TEST_F(LossTrendTest, SmallLossesMayDouble) {
  TrainPeriods(8, 0.001);
  TrainPeriods(8, 0.1);
  EXPECT_EQ(trend_.high_periods(), 0u) << "hardly any of what was gained is lost";
}

TEST_F(LossTrendTest, LargeLossesMaySwing) {
  TrainPeriods(8, 2.1);
  TrainPeriods(8, 2.4);
  EXPECT_EQ(trend_.high_periods(), 0u) << "nothing was gained";
}

TEST_F(LossTrendTest, APeriodHasAThousandExamplesInSmallJobsToo) {
  const JobSettings small{.training_examples = 100};
  LossTrend trend(small, state_, meter_);
  state_.recovery.best_loss = 0.2;
  Train(999, 1.2);
  trend.OnMeter(kFirstLoss);
  EXPECT_EQ(trend.high_periods(), 0u);
  Train(1, 1.2);
  trend.OnMeter(kFirstLoss);
  EXPECT_EQ(trend.high_periods(), 1u);
}

TEST_F(LossTrendTest, TheBestOutlivesWhatIsCounted) {
  TrainPeriods(8, 0.2);
  LossTrend later(settings_, state_, meter_);
  for (int i = 0; i < 2; ++i) {
    Train(37'500, 1.2);
    later.OnMeter(kFirstLoss);
  }
  EXPECT_EQ(later.high_periods(), 1u) << "the first period spans what was before";
}

TEST_F(LossTrendTest, LimitsRiseFromTheBestToWhatIsHigh) {
  EXPECT_EQ(trend_.Limit(kFirstLoss, 1), 0) << "there is no best";
  state_.recovery.best_loss = 0.2;
  EXPECT_DOUBLE_EQ(trend_.Limit(kFirstLoss, 0), 0.2);
  EXPECT_DOUBLE_EQ(trend_.Limit(kFirstLoss, 1), 0.9);
  EXPECT_EQ(trend_.Limit(0, 1), 0);
}

}  // namespace
}  // namespace adamant::controller
