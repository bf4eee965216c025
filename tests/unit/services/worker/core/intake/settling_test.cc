#include "services/worker/core/intake/settling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

TEST(SettlingTest, BatchesWithoutASlotAreHandedBackWhenItIsOver) {
  Notifier slot_notifier;
  Settling settling(slot_notifier);
  const std::uint32_t seen = slot_notifier.Read();
  EXPECT_TRUE(settling.Update(true).empty());
  EXPECT_TRUE(settling.active());
  const std::uint32_t rung = slot_notifier.Read();
  EXPECT_NE(rung, seen) << "who waits for a slot looks again";
  const Lease lease = {.batch = {.epoch = 1, .index = 4}};
  settling.OnNoSlot(lease);
  EXPECT_TRUE(settling.Update(true).empty());
  EXPECT_EQ(slot_notifier.Read(), rung);
  EXPECT_THAT(settling.Update(false), testing::ElementsAre(lease));
  EXPECT_FALSE(settling.active());
  EXPECT_TRUE(settling.Update(false).empty());
}

}  // namespace
}  // namespace adamant::worker
