#include "services/worker/core/sync/asynchrony/staleness_meter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace adamant::worker {
namespace {

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
  EXPECT_EQ(meter.gap_examples(), 0);
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
  EXPECT_NEAR(meter.gap_examples(), 224, 1);
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
  EXPECT_NEAR(meter.gap_examples(), 11 * 96, 1);
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
  EXPECT_LT(meter.gap_examples(), 200);
}

TEST(StalenessMeterTest, AServerThatCountsFromZeroAgainIsLeftOut) {
  StalenessMeter meter(1);
  SharedShard shard(meter);
  shard.OthersPush(500);
  shard.Fetch();
  shard.Push(32);
  shard.Forget();
  shard.Arrive();
  EXPECT_LT(meter.last_gap_examples(), 0);
}

}  // namespace
}  // namespace adamant::worker
