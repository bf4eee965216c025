#include "services/worker/core/intake/intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <variant>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

class IntakeTest : public testing::Test {
 protected:
  IntakeTest() {
    intake_.OnPlacement({.version = 1, .buckets = {}, .part_owners = {0}});
    intake_.OnDataServer(0, true);
  }

  Notifier notifier_;
  Intake intake_{
      {.threads = 1, .push_every = 2, .batch_size = 4, .prefetch = 1}, TinyGraph(), notifier_};
};

TEST_F(IntakeTest, ABatchGoesFromItsSlotToItsAnswer) {
  Batch* const slot = intake_.TakeSlot();
  ASSERT_NE(slot, nullptr);
  FillBatch(0, *slot);
  const Lease lease = slot->lease;
  const std::uint32_t seen = notifier_.Read();
  intake_.Put(slot);
  EXPECT_NE(notifier_.Read(), seen) << "training threads look again";
  Batch* const batch = intake_.Take();
  ASSERT_EQ(batch, slot);
  intake_.OnTrained(1, {{.lease = lease, .examples = 4}});
  intake_.Recycle(batch);
  EXPECT_THAT(intake_.Poll({}), testing::IsEmpty()) << "its push is under way";
  intake_.OnRetired(1, /*refused=*/false, {});
  EXPECT_FALSE(intake_.Counted());
  const auto messages = intake_.Poll({});
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(std::get<AcknowledgeMessage>(messages.front()).results.front().lease, lease);
  intake_.OnAcknowledged({lease});
  EXPECT_TRUE(intake_.Counted());
  EXPECT_TRUE(intake_.Idle());
}

TEST_F(IntakeTest, WhatThreadsLeftIsHandedBack) {
  Batch* const slot = intake_.TakeSlot();
  FillBatch(0, *slot);
  const Lease lease = slot->lease;
  intake_.Put(slot);
  const std::uint32_t seen = intake_.slot_notifier().Read();
  intake_.HandBackQueued();
  EXPECT_NE(intake_.slot_notifier().Read(), seen) << "the slot is free again";
  EXPECT_EQ(intake_.Take(), nullptr);
  const auto messages = intake_.Poll({});
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(std::get<HandBackMessage>(messages.front()).leases, testing::ElementsAre(lease));
}

TEST_F(IntakeTest, EpochsStayClosed) {
  EXPECT_FALSE(intake_.Closed(1));
  intake_.OnEpochClosed(2);
  intake_.OnEpochClosed(1);
  EXPECT_TRUE(intake_.Closed(2));
  EXPECT_FALSE(intake_.Closed(3));
}

TEST_F(IntakeTest, ANormalisationThatDoesNotFitOrDiffersIsRefused) {
  EXPECT_FALSE(intake_.SetNormalisation({.mean = {1, 2}, .deviation = {1, 1}}).ok());
  EXPECT_TRUE(intake_.SetNormalisation({.mean = {1}, .deviation = {2}}).ok());
  EXPECT_TRUE(intake_.SetNormalisation({.mean = {1}, .deviation = {2}}).ok());
  EXPECT_FALSE(intake_.SetNormalisation({.mean = {1}, .deviation = {3}}).ok());
}

TEST(NormaliseTest, EachChannelHasItsOwn) {
  const std::array<std::uint8_t, 8> pixels = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<float, 9> inputs = {};
  Normalise({.mean = {1, 3}, .deviation = {1, 2}}, 2, pixels, inputs);
  EXPECT_THAT(inputs, testing::ElementsAre(0, 1, 0, 0.5F, 4, 5, 2, 2.5F, 0));
}

}  // namespace
}  // namespace adamant::worker
