#include "services/worker/core/sync/fetches/renewal.h"

#include <gtest/gtest.h>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

TEST(RenewalTest, EndsWhenAllThreadsHaveAnsweredTheLastCommand) {
  LoneLearner lone({.threads = 2});
  const Commands& commands = lone.learner.commands();
  Renewal renewal(lone.learner);
  EXPECT_TRUE(renewal.active()) << "nobody has weights yet";
  renewal.OnReset(1);
  EXPECT_FALSE(renewal.AllWait());
  renewal.OnReset(1);
  EXPECT_TRUE(renewal.AllWait());
  for (int step = 0; step < 2 * 4 * 2; ++step) {
    lone.learner.CountStep();
  }
  renewal.Finish();
  EXPECT_FALSE(renewal.active());
  EXPECT_EQ(commands.renewed(), 1u);
  EXPECT_TRUE(lone.learner.fetch_points().IsTurn(3)) << "fetches of before are dealt with";

  renewal.Start();
  EXPECT_TRUE(renewal.active());
  EXPECT_EQ(commands.reset_wanted(), 2u);
  renewal.OnReset(1);  // late
  renewal.OnReset(2);
  EXPECT_FALSE(renewal.AllWait());
  renewal.OnReset(2);
  EXPECT_TRUE(renewal.AllWait());
}

}  // namespace
}  // namespace adamant::worker
