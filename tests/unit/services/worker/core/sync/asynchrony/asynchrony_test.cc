#include "services/worker/core/sync/asynchrony/asynchrony.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "tests/unit/services/worker/core/sync/asynchrony/one_tensor.h"

namespace adamant::worker {
namespace {

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
  EXPECT_NEAR(crowd.asynchrony.staleness_batches(), 15, 1);
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
      EXPECT_NEAR(expected.staleness_batches, crowd.asynchrony.staleness_batches(), 0.1) << workers;
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
