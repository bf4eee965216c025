#include "services/worker/core/sync/pushes/epoch_flush.h"

#include <gtest/gtest.h>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

TEST(EpochFlushTest, IsAnsweredByAllThreadsAndEndsOnce) {
  LoneLearner lone({.threads = 2});
  EpochFlush flush(lone.learner);
  EXPECT_FALSE(flush.Answered());
  flush.Begin(3);
  EXPECT_EQ(lone.learner.commands().flush_wanted(), 1u);
  flush.OnFlushed(1);
  EXPECT_FALSE(flush.Answered());
  flush.OnFlushed(1);
  EXPECT_TRUE(flush.Answered());
  EXPECT_EQ(flush.Take(), 3u);
  EXPECT_FALSE(flush.Answered());
}

TEST(EpochFlushTest, AskedAgainItWaitsForNewAnswersAndForTheLaterEpoch) {
  LoneLearner lone({});
  EpochFlush flush(lone.learner);
  flush.Begin(3);
  flush.Begin(2);
  flush.OnFlushed(1);  // to the first
  EXPECT_FALSE(flush.Answered());
  flush.OnFlushed(2);
  EXPECT_TRUE(flush.Answered());
  EXPECT_EQ(flush.Take(), 3u);
}

}  // namespace
}  // namespace adamant::worker
