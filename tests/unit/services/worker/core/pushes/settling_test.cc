#include "services/worker/core/pushes/settling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

TEST(SettlingTest, BatchesWithoutASlotAreHandedBackWhenItIsOver) {
  LoneReplica lone({});
  Settling settling(lone.replica);
  const std::uint32_t seen = lone.replica.slot_bell.Read();
  EXPECT_TRUE(settling.Update(true).empty());
  EXPECT_TRUE(lone.replica.commands.settling);
  const std::uint32_t rung = lone.replica.slot_bell.Read();
  EXPECT_NE(rung, seen) << "who waits for a slot looks again";
  const Lease lease = {.epoch = 1, .index = 4};
  settling.OnNoSlot(lease);
  EXPECT_TRUE(settling.Update(true).empty());
  EXPECT_EQ(lone.replica.slot_bell.Read(), rung);
  EXPECT_THAT(settling.Update(false), testing::ElementsAre(lease));
  EXPECT_FALSE(lone.replica.commands.settling);
  EXPECT_TRUE(settling.Update(false).empty());
}

}  // namespace
}  // namespace adamant::worker
