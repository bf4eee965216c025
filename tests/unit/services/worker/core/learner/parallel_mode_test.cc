#include "services/worker/core/learner/parallel_mode.h"

#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

/// Two threads on adam-mnist.
ParallelWork AdamMnist(std::uint64_t batch) {
  return {.threads = 2,
          .batch_size = batch,
          .push_every = 8,
          .parameters = 298090,
          .flop_per_example = 4248000};
}

TEST(ParallelModeTest, NearCoresShareEveryBatchUnlessItIsSmall) {
  EXPECT_EQ(ChooseParallelMode(AdamMnist(1), 30).share_every, 8u);
  EXPECT_EQ(ChooseParallelMode(AdamMnist(8), 30).share_every, 4u);
  EXPECT_EQ(ChooseParallelMode(AdamMnist(32), 30).share_every, 1u);
  EXPECT_EQ(ChooseParallelMode(AdamMnist(32), 30).Name(), "Hogwild");
}

TEST(ParallelModeTest, FarCoresShareOftenEnoughToPush) {
  EXPECT_EQ(ChooseParallelMode(AdamMnist(1), 160).share_every, 8u);
  EXPECT_EQ(ChooseParallelMode(AdamMnist(8), 160).share_every, 4u);
  EXPECT_EQ(ChooseParallelMode(AdamMnist(32), 160).share_every, 2u);
  EXPECT_EQ(ChooseParallelMode(AdamMnist(32), 160).Name(), "Accumulate");
  EXPECT_EQ(ChooseParallelMode(AdamMnist(128), 160).share_every, 1u);
}

TEST(ParallelModeTest, OnlyWhetherThePingIsNearMatters) {
  for (const std::uint64_t batch : {1, 8, 32}) {
    const ParallelMode near = ChooseParallelMode(AdamMnist(batch), 20);
    EXPECT_EQ(ChooseParallelMode(AdamMnist(batch), 79), near);
    EXPECT_EQ(ChooseParallelMode(AdamMnist(batch), std::nullopt), near);
    const ParallelMode far = ChooseParallelMode(AdamMnist(batch), 80);
    EXPECT_EQ(ChooseParallelMode(AdamMnist(batch), 1000), far);
  }
}

TEST(ParallelModeTest, OneThreadWhereTwoWouldBeSlower) {
  ParallelWork work = AdamMnist(4);
  work.push_every = 1;
  EXPECT_EQ(ChooseParallelMode(work, 160), ParallelMode{});
  EXPECT_EQ(ChooseParallelMode(work, 160).Name(), "OneThread");
  EXPECT_EQ(ChooseParallelMode(work, 30).threads, 2u);
}

TEST(ParallelModeTest, OneThreadSharesItsWeightsWithNobody) {
  ParallelWork work = AdamMnist(1);
  work.threads = 1;
  EXPECT_EQ(ChooseParallelMode(work, 160), ParallelMode{});
}

}  // namespace
}  // namespace adamant::worker
