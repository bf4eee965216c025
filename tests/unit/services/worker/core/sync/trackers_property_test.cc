// The trackers against servers that lose streams, answer late or never, are replaced, and lose what
// they had acknowledged (ModelServers).

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/services/worker/core/sync/tracker_world.h"

namespace adamant::worker {
namespace {

/// Totals over many worlds.
struct Totals {
  std::uint64_t rolled_back = 0;
  std::uint64_t lost = 0;
  std::uint64_t resent = 0;
  std::uint64_t released = 0;
};

Totals RunWorlds(const Faults& faults) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= 1000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TrackerWorld world(seed, faults);
    for (int i = 0; i < 1000; ++i) {
      world.Step();
    }
    world.Settle();
    world.ExpectAppliedOnceInOrderOrCountedAsLost();
    world.ExpectEveryBatchAcknowledged();
    totals.rolled_back += world.rolled_back();
    totals.lost += world.pushes().lost_updates();
    totals.resent += world.pushes().resent_updates();
    totals.released += world.released();
  }
  return totals;
}

TEST(TrackersPropertyTest, FailoversLoseAndRepeatNothing) {
  const Totals totals = RunWorlds({});
  EXPECT_EQ(totals.lost, 0u);
  EXPECT_EQ(totals.resent, 0u);
  EXPECT_GT(totals.released, 0u);
}

TEST(TrackersPropertyTest, FailoversLoseAndRepeatNothingIfNothingIsRetained) {
  EXPECT_EQ(RunWorlds({.retain = false}).lost, 0u);
}

TEST(TrackersPropertyTest, WhatIsRetainedBringsBackWhatWentWithAllMembers) {
  const Totals totals = RunWorlds({.deaths = true});
  EXPECT_GT(totals.rolled_back, 0u);
  EXPECT_GT(totals.resent, 0u);
  EXPECT_GT(totals.released, 0u);
  EXPECT_EQ(totals.lost, 0u);
}

TEST(TrackersPropertyTest, WithoutRetentionEveryLossIsCountedOnce) {
  const Totals totals = RunWorlds({.retain = false, .deaths = true});
  EXPECT_GT(totals.lost, 0u);
}

TEST(TrackersPropertyTest, LossesOfDisksAreCountedOnceAndTheRestIsBroughtBack) {
  const Totals totals = RunWorlds({.deaths = true, .disk_loss = true});
  EXPECT_GT(totals.lost, 0u);
  EXPECT_GT(totals.resent, 0u);
}

}  // namespace
}  // namespace adamant::worker
