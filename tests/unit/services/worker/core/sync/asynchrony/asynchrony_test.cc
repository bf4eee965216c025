#include "services/worker/core/sync/asynchrony/asynchrony.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "services/common/base/rng.h"
#include "services/worker/core/sync/asynchrony/gain_control.h"
#include "services/worker/core/sync/asynchrony/staleness_meter.h"

namespace adamant::worker {
namespace {

UpdatePlan OneTensor(std::uint64_t size) {
  UpdatePlan plan;
  plan.elements = size;
  plan.tensors.push_back({.offset = 0, .size = size, .optimiser = {}});
  return plan;
}

/// A shard on a server, as one worker and others see it.
class SharedShard {
 public:
  explicit SharedShard(StalenessMeter& meter) : meter_(meter) { Fetch(); }

  void Fetch() {
    meter_.OnValue({.shard = 0, .included_sequence = arrived_, .examples = examples_});
    meter_.OnFetched();
    meter_.OnApplied();
  }
  void Push(std::uint64_t examples) {
    meter_.OnPush(++sequence_, examples);
    pushed_ = examples;
  }
  void Arrive() {
    arrived_ = sequence_;
    examples_ += pushed_;
    meter_.OnReply(sequence_,
                   {{.shard = 0, .outcome = PushOutcome::kApplied, .examples = examples_}});
  }
  void OthersPush(std::uint64_t examples) { examples_ += examples; }
  void Forget() { examples_ = 0; }

 private:
  StalenessMeter& meter_;
  Sequence sequence_ = 0;
  Sequence arrived_ = 0;
  std::uint64_t examples_ = 0;
  std::uint64_t pushed_ = 0;
};

TEST(StalenessMeterTest, OwnExamplesAreNoStaleness) {
  StalenessMeter meter(1);
  SharedShard shard(meter);
  for (int i = 0; i < 30; ++i) {
    shard.Push(32);
    shard.Arrive();
    shard.Fetch();
  }
  EXPECT_FALSE(meter.seen_others());
  EXPECT_EQ(meter.gap(), 0);
  EXPECT_EQ(meter.others_per_own(), 0);
}

TEST(StalenessMeterTest, CountsWhatOthersDidBetweenAFetchAndThePushComputedFromIt) {
  StalenessMeter meter(1);
  SharedShard shard(meter);
  for (int i = 0; i < 60; ++i) {
    shard.OthersPush(64);
    shard.Push(32);
    shard.OthersPush(160);
    shard.Arrive();
    shard.Fetch();
  }
  EXPECT_NEAR(meter.gap(), 224, 1);
  EXPECT_NEAR(meter.others_per_own(), 7, 0.1);
  EXPECT_EQ(meter.moved(), 224);
}

TEST(StalenessMeterTest, ComparesWithPushesThatTheNextFetchHas) {
  StalenessMeter meter(1);
  SharedShard shard(meter);
  shard.Fetch();
  for (int i = 0; i < 60; ++i) {
    shard.Push(32);
    shard.OthersPush(32);
    shard.Fetch();
    shard.OthersPush(32);
    shard.Arrive();
    shard.Fetch();
  }
  EXPECT_NEAR(meter.others_per_own(), 2, 0.01);
}

TEST(StalenessMeterTest, APushIsAsOldAsItsFirstBatch) {
  StalenessMeter meter(1);
  SharedShard shard(meter);
  shard.Fetch();
  for (int i = 0; i < 60; ++i) {
    for (int batch = 0; batch < 10; ++batch) {
      shard.OthersPush(96);
      shard.Fetch();
    }
    shard.Push(320);
    shard.OthersPush(96);
    shard.Arrive();
    shard.Fetch();
  }
  EXPECT_NEAR(meter.gap(), 11 * 96, 1);
  EXPECT_NEAR(meter.others_per_own(), 3.3, 0.05);
}

TEST(StalenessMeterTest, WhatOthersDidWhileThisWorkerHadNoBatchIsNotCompared) {
  StalenessMeter meter(1);
  SharedShard shard(meter);
  const auto round = [&] {
    shard.Push(32);
    shard.OthersPush(96);
    shard.Arrive();
    shard.Fetch();
  };
  for (int i = 0; i < 5; ++i) {
    round();
  }
  shard.OthersPush(64'000);
  shard.Fetch();
  meter.OnRenewed();
  round();
  EXPECT_NEAR(meter.others_per_own(), 3, 1e-6);
}

TEST(StalenessMeterTest, WhatOthersDidBeforeTheFirstBatchIsNotCompared) {
  StalenessMeter meter(1);
  SharedShard shard(meter);
  shard.OthersPush(6400);
  shard.Fetch();
  for (int i = 0; i < 5; ++i) {
    shard.Push(32);
    shard.OthersPush(96);
    shard.Arrive();
    shard.Fetch();
  }
  EXPECT_NEAR(meter.others_per_own(), 3, 1e-6);
}

TEST(StalenessMeterTest, OnePauseDoesNotCountForLong) {
  StalenessMeter meter(1);
  SharedShard shard(meter);
  const auto round = [&](std::uint64_t others) {
    shard.Push(32);
    shard.OthersPush(others);
    shard.Arrive();
    shard.Fetch();
  };
  for (int i = 0; i < 30; ++i) {
    round(100);
  }
  round(1'000'000);
  EXPECT_LT(meter.gap(), 200);
}

TEST(StalenessMeterTest, AServerThatCountsFromZeroAgainIsLeftOut) {
  StalenessMeter meter(1);
  SharedShard shard(meter);
  shard.OthersPush(500);
  shard.Fetch();
  shard.Push(32);
  shard.Forget();
  shard.Arrive();
  EXPECT_LT(meter.last_gap(), 0);
}

/// Observes a line of values that swings with this period in fetches, growing by `growth`.
double AgreementOf(int period,
                   std::size_t stretch,
                   GainControl::Crowd crowd = GainControl::Crowd::kMany) {
  GainControl control(OneTensor(64), /*has_momentum=*/true);
  control.Start(0.5);
  std::vector<float> values(64);
  for (int i = 0; i < 40; ++i) {
    const auto swing = static_cast<float>(std::sin(2 * 3.14159265 * i / period));
    for (std::size_t j = 0; j < values.size(); ++j) {
      values[j] = swing * static_cast<float>(j % 3 + 1);
    }
    control.Observe(values, {.stretch = stretch, .growth = 0.05, .crowd = crowd});
  }
  return control.gain();
}

TEST(GainControlTest, RisesWhileTheWeightsGoOn) {
  GainControl control(OneTensor(64), /*has_momentum=*/true);
  control.Start(0.1);
  std::vector<float> values(64);
  for (int i = 0; i < 100; ++i) {
    for (float& value : values) {
      value += 0.01f;
    }
    control.Observe(values, {.stretch = 4, .growth = 0.05});
  }
  EXPECT_EQ(control.gain(), 1);
  EXPECT_NEAR(control.agreement(), 1, 1e-3);
}

TEST(GainControlTest, FallsWhereTheWeightsSwingToAQuarterOfWhereItBegan) {
  EXPECT_EQ(AgreementOf(8, 4), 0.125);
  EXPECT_EQ(AgreementOf(8, 4, GainControl::Crowd::kFew), 0.125);
  EXPECT_EQ(AgreementOf(8, 4, GainControl::Crowd::kOne), 0.125);
}

TEST(GainControlTest, SlowTurnsAreNoSwings) { EXPECT_GT(AgreementOf(400, 2), 0.9); }

/// The gain after movements that have nothing to do with each other, but for the share of the last
/// one that is taken back.
double GainOfNoise(bool has_momentum,
                   double most = 1,
                   GainControl::Crowd crowd = GainControl::Crowd::kMany,
                   float taken_back = 0,
                   std::size_t parameters = 512) {
  GainControl control(OneTensor(parameters), has_momentum);
  control.Start(0.2);
  Rng rng(1);
  std::vector<float> values(parameters);
  for (int i = 0; i < 200; ++i) {
    for (float& value : values) {
      value = (1 - taken_back) * value + static_cast<float>(rng.Normal());
    }
    control.Observe(values, {.growth = 0.05, .crowd = crowd, .most = most});
  }
  return control.gain();
}

TEST(GainControlTest, NoiseIsSwingingOnlyWhereMomentumWouldSmoothIt) {
  EXPECT_EQ(GainOfNoise(/*has_momentum=*/false), 1);
  EXPECT_LT(GainOfNoise(/*has_momentum=*/true), 0.1);
  EXPECT_EQ(GainOfNoise(/*has_momentum=*/true, /*most=*/1, GainControl::Crowd::kFew), 1);
}

// Weights that stay about where they are, moved by chance alone.
TEST(GainControlTest, WhatIsTakenBackByChanceIsNoSwingBesideOneOther) {
  const auto gain_beside = [](GainControl::Crowd crowd) {
    return GainOfNoise(/*has_momentum=*/true, /*most=*/1, crowd, /*taken_back=*/0.5);
  };
  EXPECT_GT(gain_beside(GainControl::Crowd::kOne), 0.5);
  EXPECT_LT(gain_beside(GainControl::Crowd::kFew), 0.2);
}

// Of a few parameters a single movement may seem to swing.
TEST(GainControlTest, BesideOneOtherAMeanOfMovementsTells) {
  EXPECT_GT(GainOfNoise(/*has_momentum=*/true,
                        /*most=*/1,
                        GainControl::Crowd::kOne,
                        /*taken_back=*/0.5,
                        /*parameters=*/16),
            0.5);
}

TEST(GainControlTest, BesideOneOtherItExceedsOneOnlyWhereMovementsGoOn) {
  EXPECT_LT(
      GainOfNoise(/*has_momentum=*/true, /*most=*/2, GainControl::Crowd::kOne, /*taken_back=*/0.1),
      1.1);
}

TEST(GainControlTest, ExceedsOneOnlyWhereNothingTurns) {
  EXPECT_LT(GainOfNoise(/*has_momentum=*/false, /*most=*/2), 1.1);
  GainControl control(OneTensor(64), /*has_momentum=*/true);
  control.Start(0.5);
  std::vector<float> values(64);
  const auto go_on = [&](double most) {
    for (int i = 0; i < 100; ++i) {
      for (float& value : values) {
        value += 0.01f;
      }
      control.Observe(values, {.growth = 0.05, .most = most});
    }
  };
  go_on(2);
  EXPECT_EQ(control.gain(), 2);
  go_on(1.5);
  EXPECT_EQ(control.gain(), 1.5);
}

TEST(GainControlTest, RisesTheSlowerTheLessStretchesAgree) {
  EXPECT_GT(AgreementOf(400, 2), AgreementOf(14, 2));
  EXPECT_LT(AgreementOf(14, 2), 0.5);
}

AsynchronyOptions Momentum() {
  return {.corrects = true,
          .threads = 1,
          .batch_size = 32,
          .exchange_every = 8,
          .exchange_beside_one = 8,
          .kind = OptimiserKind::kMomentum,
          .location = OptimiserLocation::kWorker,
          .momentum = 0.9};
}

/// A worker beside `others` equal ones, all of which move the weights the same way. What it fetches
/// is `late` steps old when it comes.
class Crowd {
 public:
  Crowd(const AsynchronyOptions& options, std::uint64_t others, std::uint64_t late = 0)
      : others_(others), late_examples_(32 * others * late), asynchrony(options, plan_, 1) {
    asynchrony.OnWorkers(static_cast<std::uint32_t>(others + 1));
    Fetch();
  }

  /// At its first batch it finds that the job has trained, before these servers began.
  void FindItselfOutdated() {
    asynchrony.OnOutdated();
    Fetch();
  }

  /// So many exchanges, after as many batches each as the guidance says.
  void Train(int exchanges) {
    for (int i = 0; i < exchanges; ++i) {
      const std::uint64_t every = asynchrony.guidance().exchange_every;
      asynchrony.meter().OnPush(++sequence_, 32 * every);
      examples_ += 32 * every * (others_ + 1);
      asynchrony.meter().OnReply(
          sequence_, {{.shard = 0, .outcome = PushOutcome::kApplied, .examples = examples_}});
      Fetch();
    }
  }

 private:
  void Fetch() {
    asynchrony.meter().OnValue({.shard = 0,
                                .included_sequence = sequence_,
                                .examples = examples_ - std::min(examples_, late_examples_)});
    for (float& value : values_) {
      value += 0.01f;
    }
    now_ += std::chrono::milliseconds(10);
    asynchrony.OnFetched(values_, now_);
    asynchrony.meter().OnApplied();
  }

  const UpdatePlan plan_ = OneTensor(64);
  const std::uint64_t others_;
  const std::uint64_t late_examples_;
  std::vector<float> values_ = std::vector<float>(64);
  Sequence sequence_ = 0;
  std::uint64_t examples_ = 0;
  Clock::TimePoint now_{};

 public:
  Asynchrony asynchrony;
};

TEST(AsynchronyTest, AWorkerAloneIsNotCorrected) {
  Crowd crowd(Momentum(), 0);
  crowd.Train(100);
  EXPECT_FALSE(crowd.asynchrony.active());
  EXPECT_EQ(crowd.asynchrony.guidance(), Guidance{.exchange_every = 8});
}

// Here all movements go on and on: at a rate that low each of two goes as far as one alone would.
TEST(AsynchronyTest, TwoEqualWorkersRememberLittleAndMakeUpForTheSlowerRateWhereNothingTurns) {
  Crowd crowd(Momentum(), 1);
  crowd.Train(1);
  EXPECT_NEAR(crowd.asynchrony.gain(), 0.5, 0.1);
  crowd.Train(100);
  EXPECT_NEAR(crowd.asynchrony.gain(), 2, 0.02);
  EXPECT_NEAR(crowd.asynchrony.guidance().correction.rate, 1, 0.01);
  EXPECT_NEAR(crowd.asynchrony.guidance().correction.memory, 0.2, 0.01);  // of momentum 0.9: 0.5
  EXPECT_EQ(crowd.asynchrony.guidance().exchange_every, 8);
  EXPECT_EQ(crowd.asynchrony.guidance().look_ahead, 0);
}

// Which agree by momentum then: that is no reason to go farther.
TEST(AsynchronyTest, TwoThatMeetAfterEveryBatchGoNoFartherThanOneWorker) {
  AsynchronyOptions options = Momentum();
  options.exchange_beside_one = 1;
  Crowd crowd(options, 1);
  crowd.Train(300);
  EXPECT_EQ(crowd.asynchrony.guidance().exchange_every, 1);
  EXPECT_NEAR(crowd.asynchrony.gain(), 1, 0.01);
  EXPECT_EQ(Expect(options, 2).push_every, 1);
  EXPECT_EQ(Expect(options, 1).push_every, 8) << "alone it has nobody to meet";
}

TEST(AsynchronyTest, BesideOneOtherMomentumIsMadeUpForOnlyToNineTenths) {
  const auto rate_at = [](double momentum) {
    AsynchronyOptions options = Momentum();
    options.momentum = momentum;
    const Correction correction = Expect(options, 2).correction;
    const ParameterOptimiser written = {
        .kind = OptimiserKind::kMomentum, .rate = 0.02, .momentum = momentum};
    EXPECT_NEAR(written.At(0, correction).momentum, std::min(momentum, 0.5), 1e-6);
    return written.At(0, correction).rate;
  };
  EXPECT_NEAR(rate_at(0.3), 0.5 * 0.02, 1e-6);  // nothing to shorten
  EXPECT_NEAR(rate_at(0.9), 0.5 * 0.02 * 5, 1e-6);
  EXPECT_NEAR(rate_at(0.99), 0.5 * 0.02 * 5, 1e-6);
}

// While one trains alone, and the others fade in.
TEST(AsynchronyTest, OneOfManyThatHaveHardlyBegunKeepsItsMomentum) {
  Crowd crowd(Momentum(), 1);
  crowd.asynchrony.OnWorkers(16);
  crowd.Train(100);
  EXPECT_NEAR(crowd.asynchrony.guidance().correction.memory, 1, 0.01);
}

TEST(AsynchronyTest, TwoWorkersOfTwoThreadsKeepTheirMomentum) {
  AsynchronyOptions options = Momentum();
  options.threads = 2;
  EXPECT_EQ(Expect(options, 2).correction.memory, 1);
}

TEST(AsynchronyTest, ThreeMeetAfterEveryBatch) {
  Crowd crowd(Momentum(), 2);
  crowd.Train(20);
  EXPECT_EQ(crowd.asynchrony.guidance().exchange_every, 1);
}

TEST(AsynchronyTest, TwoAreACrowdWhereMomentumIsOnTheServers) {
  AsynchronyOptions options = Momentum();
  options.location = OptimiserLocation::kServer;
  options.exchange_every = IntervalAlone(true);
  Crowd crowd(options, 1);
  crowd.Train(1);  // while the gain is what it begins with
  EXPECT_LT(crowd.asynchrony.guidance().correction.rate, 0.5f);
  EXPECT_EQ(crowd.asynchrony.guidance().exchange_every, 2);
  crowd.Train(100);
  EXPECT_GT(crowd.asynchrony.guidance().look_ahead, 0);
}

TEST(AsynchronyTest, ManyBeginWithOneWorkersRateTogetherAndMeetOften) {
  Crowd crowd(Momentum(), 15);
  crowd.Train(1);
  EXPECT_NEAR(crowd.asynchrony.gain(), 1.0 / 16, 0.01);
  crowd.Train(300);
  EXPECT_EQ(crowd.asynchrony.guidance().exchange_every, 1);
  EXPECT_NEAR(crowd.asynchrony.gap_batches(), 15, 1);
  EXPECT_NEAR(crowd.asynchrony.guidance().correction.rate, 1, 1e-6);  // as nothing ever turns
  EXPECT_GT(crowd.asynchrony.guidance().correction.memory, 1.8);
  EXPECT_NEAR(crowd.asynchrony.guidance().look_ahead, 1, 0.1);
}

// All begin together, and none has seen another train.
TEST(AsynchronyTest, InAJobThatGoesOnFromDiskEachBeginsWithItsShare) {
  Crowd crowd(Momentum(), 15);
  EXPECT_FALSE(crowd.asynchrony.active());
  crowd.FindItselfOutdated();
  EXPECT_TRUE(crowd.asynchrony.active());
  EXPECT_NEAR(crowd.asynchrony.gain(), 1.0 / 16, 1e-6);
  EXPECT_LT(crowd.asynchrony.guidance().correction.rate, 1.0 / 16);
  EXPECT_EQ(crowd.asynchrony.guidance().exchange_every, 1);
}

TEST(AsynchronyTest, AWorkerAloneGoesOnFromDiskAsItWas) {
  Crowd crowd(Momentum(), 0);
  crowd.FindItselfOutdated();
  EXPECT_FALSE(crowd.asynchrony.active());
  EXPECT_EQ(crowd.asynchrony.guidance(), Guidance{.exchange_every = 8});
}

TEST(AsynchronyTest, RateIsLowerWhereTheIntervalIsKeptLong) {
  const auto rate_at = [](std::uint64_t most) {
    AsynchronyOptions options = Momentum();
    options.exchange_every = most;
    Crowd crowd(options, 2);
    crowd.Train(1);  // while the gain is what it begins with
    return crowd.asynchrony.guidance().correction.rate;
  };
  EXPECT_GT(rate_at(1), rate_at(8));
}

TEST(AsynchronyTest, OffChoosesTheIntervalOnly) {
  AsynchronyOptions options = Momentum();
  options.corrects = false;
  Crowd crowd(options, 15);
  crowd.Train(100);
  EXPECT_EQ(crowd.asynchrony.guidance().correction, Correction{});
  EXPECT_EQ(crowd.asynchrony.guidance().look_ahead, 0);
  EXPECT_EQ(crowd.asynchrony.guidance().exchange_every, 1);
}

TEST(AsynchronyTest, RulesWithoutMomentumRememberNothing) {
  AsynchronyOptions options = Momentum();
  options.kind = OptimiserKind::kSgd;
  Crowd crowd(options, 15);
  crowd.Train(100);
  EXPECT_EQ(crowd.asynchrony.guidance().correction.memory, 1);
  EXPECT_EQ(crowd.asynchrony.guidance().look_ahead, 0);
}

TEST(AsynchronyTest, WhatAProcessComputedThatStoodStillCountsLess) {
  Crowd crowd(Momentum(), 7);
  crowd.Train(50);
  EXPECT_EQ(crowd.asynchrony.FreshnessAfter(std::chrono::milliseconds(5)), 1);
  EXPECT_LT(crowd.asynchrony.FreshnessAfter(std::chrono::seconds(6)), 0.01);
  EXPECT_GT(crowd.asynchrony.FreshnessAfter(std::chrono::hours(6)), 0);
}

TEST(ExpectTest, IsWhatWorkersComeTo) {
  for (const OptimiserLocation location :
       {OptimiserLocation::kWorker, OptimiserLocation::kServer}) {
    for (const std::uint32_t workers : {2U, 3U, 4U, 8U, 16U}) {
      AsynchronyOptions options = Momentum();
      options.location = location;
      Crowd crowd(options, workers - 1, /*late=*/1);
      crowd.Train(400);
      const Expectation expected = Expect(options, workers);
      const Guidance& guidance = crowd.asynchrony.guidance();
      EXPECT_EQ(expected.push_every, guidance.exchange_every) << workers;
      EXPECT_EQ(expected.fetch_every, guidance.exchange_every) << workers;
      EXPECT_NEAR(expected.staleness_batches, crowd.asynchrony.gap_batches(), 0.1) << workers;
      EXPECT_NEAR(
          expected.correction.rate, guidance.correction.rate / crowd.asynchrony.gain(), 0.01)
          << workers;
      EXPECT_NEAR(expected.correction.memory, guidance.correction.memory, 0.1) << workers;
    }
  }
}

TEST(ExpectTest, SixteenWorkers) {
  const Expectation expected = Expect(Momentum(), 16);
  EXPECT_EQ(expected.push_every, 1);
  EXPECT_EQ(expected.staleness_batches, 30);
  EXPECT_NEAR(expected.correction.rate, 1 / 2.4, 1e-6);
  EXPECT_NEAR(expected.correction.memory, 1 + 14.0 / 15, 1e-6);
}

TEST(ExpectTest, AWorkerAloneIsNotCorrected) {
  AsynchronyOptions options = Momentum();
  options.threads = 4;
  EXPECT_EQ(Expect(options, 1), (Expectation{.fetch_every = 8, .push_every = 8}));
}

TEST(ExpectTest, ThreadsCountAsOthersDo) {
  AsynchronyOptions options = Momentum();
  options.threads = 4;
  const Expectation expected = Expect(options, 3);
  EXPECT_EQ(expected.push_every, 1);
  EXPECT_EQ(expected.staleness_batches, 16);
}

TEST(ExpectTest, WrittenIntervalsAreKept) {
  const auto with = [](const WrittenIntervals& written, std::uint32_t workers = 16) {
    AsynchronyOptions options = Momentum();
    options.written = written;
    return Expect(options, workers);
  };
  const Expectation both = with({.fetch_every = 8, .push_every = 8});
  EXPECT_EQ(both.push_every, 8);
  EXPECT_EQ(both.staleness_batches, 15 * 9);
  EXPECT_LT(both.correction.rate, 0.04);
  const Expectation fetch = with({.fetch_every = 8});
  EXPECT_EQ(fetch.fetch_every, 8);
  EXPECT_EQ(fetch.push_every, 1);
  EXPECT_LT(fetch.staleness_batches, both.staleness_batches);
  EXPECT_EQ(with({.push_every = 8}).staleness_batches, both.staleness_batches)
      << "a push's first batch waits for its last";
  EXPECT_EQ(with({.push_every = 80}, 2).fetch_every, 8);
}

TEST(ExpectTest, OffLeavesTheNumbers) {
  AsynchronyOptions options = Momentum();
  options.corrects = false;
  EXPECT_EQ(Expect(options, 16).correction, Correction{});
  EXPECT_EQ(Expect(options, 16).staleness_batches, 30);
}

}  // namespace
}  // namespace adamant::worker
