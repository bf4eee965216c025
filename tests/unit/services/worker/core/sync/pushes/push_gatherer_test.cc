#include "services/worker/core/sync/pushes/push_gatherer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

class PushGathererTest : public testing::Test {
 protected:
  /// A thread hands over an accumulator with `value` everywhere and one batch of 4 examples.
  Accumulator& HandOver(std::size_t thread, float value, std::uint64_t progress = 0) {
    accumulators_.push_back(std::make_unique<Accumulator>(
        lone_.plan, lone_.layout.shards().size(), lone_.learner.options().push_every));
    Accumulator& accumulator = *accumulators_.back();
    std::ranges::fill(accumulator.values.span(), value);
    accumulator.results.push_back(
        {.lease = {.batch = {.index = static_cast<std::uint32_t>(thread)}},
         .examples = 4,
         .loss_sum = 1});
    accumulator.progress = progress;
    accumulator.live = true;
    lone_.learner.channel(thread).Emit(
        {.kind = ThreadEvent::Kind::kPush, .accumulator = &accumulator});
    return accumulator;
  }

  LoneLearner lone_{{.threads = 2}};
  Asynchrony asynchrony_{AsynchronyOptionsOf(lone_.learner.options(), lone_.plan),
                         lone_.plan,
                         lone_.layout.shards().size()};
  PushGatherer gatherer_{lone_.learner, asynchrony_};
  std::vector<std::unique_ptr<Accumulator>> accumulators_;
};

TEST_F(PushGathererTest, ThereIsNothingBeforeAThreadHandsOver) {
  EXPECT_FALSE(gatherer_.Gather().has_value());
}

TEST_F(PushGathererTest, OneOfEachThreadIsSummedIntoTheFirst) {
  Accumulator& first = HandOver(0, 1, 8);
  const Accumulator& second = HandOver(1, 2, 16);
  HandOver(0, 5);
  const std::optional<GatheredPush> push = gatherer_.Gather();
  ASSERT_TRUE(push.has_value());
  EXPECT_EQ(push->content->parts.size(), 2u);
  EXPECT_EQ(&push->sum(), &first);
  EXPECT_EQ(first.values.span().front(), 3);
  EXPECT_EQ(first.progress, 16u);
  EXPECT_TRUE(first.live);
  EXPECT_FALSE(second.live) << "counted in the first";
  EXPECT_EQ(push->results.size(), 2u);
  EXPECT_EQ(push->examples(), 8u);
  EXPECT_TRUE(push->finite);
}

TEST_F(PushGathererTest, WhileAThreadAppliesAFetchTheyAreTakenOneByOneInTurn) {
  lone_.learner.fetch().Request();
  lone_.learner.fetch().Complete();
  ASSERT_EQ(lone_.learner.fetch().BeginApply(), FetchSlot::Begun::kApply);
  const Accumulator& first = HandOver(0, 1);
  HandOver(0, 5);
  const Accumulator& second = HandOver(1, 2);
  EXPECT_EQ(&gatherer_.Gather()->sum(), &first);
  EXPECT_EQ(&gatherer_.Gather()->sum(), &second);
}

TEST_F(PushGathererTest, WhatIsNotFiniteIsFound) {
  HandOver(0, std::numeric_limits<float>::quiet_NaN());
  const std::optional<GatheredPush> push = gatherer_.Gather();
  EXPECT_FALSE(push->finite);
  EXPECT_EQ(push->culprit, &lone_.plan.pushed.front());

  HandOver(1, 0).results.front().loss_sum = std::numeric_limits<double>::infinity();
  const std::optional<GatheredPush> loss = gatherer_.Gather();
  EXPECT_FALSE(loss->finite);
  EXPECT_EQ(loss->culprit, nullptr) << "no shard is to blame";
}

TEST_F(PushGathererTest, ServersThatOnlyAddAreToldOfNoMemory) {
  Accumulator& sum = HandOver(0, 1);
  sum.correction = {.rate = 0.5F, .memory = 0.25F};
  const Correction correction = gatherer_.CorrectionFor(sum);
  EXPECT_EQ(correction.rate, 0.5F);
  EXPECT_EQ(correction.memory, 1.0F);
}

}  // namespace
}  // namespace adamant::worker
