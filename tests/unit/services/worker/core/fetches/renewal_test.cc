#include "services/worker/core/fetches/renewal.h"

#include <gtest/gtest.h>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

TEST(RenewalTest, EndsWhenAllThreadsHaveAnsweredTheLastCommand) {
  LoneReplica lone({.threads = 2});
  Commands& commands = lone.replica.commands;
  Renewal renewal(lone.replica);
  EXPECT_TRUE(renewal.active()) << "nobody has weights yet";
  renewal.OnReset(1);
  EXPECT_FALSE(renewal.AllWait());
  renewal.OnReset(1);
  EXPECT_TRUE(renewal.AllWait());
  lone.replica.fetch_points = 5;
  renewal.Finish();
  EXPECT_FALSE(renewal.active());
  EXPECT_EQ(commands.renewed, 1u);
  EXPECT_EQ(lone.replica.fetch_turn, 5u) << "fetches of before are dealt with";

  renewal.Start();
  EXPECT_TRUE(renewal.active());
  EXPECT_EQ(commands.reset_wanted, 2u);
  renewal.OnReset(1);  // late
  renewal.OnReset(2);
  EXPECT_FALSE(renewal.AllWait());
  renewal.OnReset(2);
  EXPECT_TRUE(renewal.AllWait());
}

}  // namespace
}  // namespace adamant::worker
